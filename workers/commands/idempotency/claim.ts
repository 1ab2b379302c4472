import { limits } from '../../../src/base/limits/limits.js'
import type { CommandOf } from '../../../src/protocol/messages.js'
import { canonicalJson, readJson } from '../../../src/strand/json.js'
import type { FeatureCommands } from '../../shard/command-table.js'
import type { Decision, ShardState } from '../../shard/state.js'

/** Claims of an Idempotency-Key. */
export const claimCommands = {
  writes: { requestClaim: { decide: requestClaim, prepare: prepareClaim } },
} satisfies FeatureCommands

function prepareClaim(state: ShardState, command: CommandOf<'requestClaim'>) {
  const content = () => {
    const parsed = readJson(command.body, limits.nestingDepthMax)
    return 'code' in parsed ? undefined : canonicalJson(parsed.value)
  }
  return { content, run: () => requestClaim(state) }
}

/**
 * Claims an Idempotency-Key: only the digest of the request counts. The random value is stored with the
 * answer.
 */
function requestClaim(state: ShardState): Decision {
  const drawn = Buffer.from(state.random(DRAWN_BYTES)).toString('hex')
  return () => ({ kind: 'claimed', drawn })
}

const DRAWN_BYTES = 12
