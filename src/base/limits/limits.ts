import { answerLimits } from './answers.js'
import { authLimits } from './auth.js'
import { conditionLimits } from './conditions.js'
import { ingestLimits } from './ingest.js'
import { outboundLimits } from './outbound.js'
import { proposalLimits } from './proposals.js'
import { assertRelated } from './relations.js'
import { requestLimits } from './requests.js'
import { shardLimits } from './shards.js'

/** All limits of the server, each with its unit (docs/GUARANTEES.md, Bounds). */
export const limits = {
  ...requestLimits,
  ...answerLimits,
  ...conditionLimits,
  ...ingestLimits,
  ...shardLimits,
  ...authLimits,
  ...outboundLimits,
  ...proposalLimits,
} as const
assertRelated(limits)
