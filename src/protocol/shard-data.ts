import type { LockoutPolicy } from '../auth/lockout.js'
import { isBytes, isFlag, isNumber, isText, members, oneOf, optional, type Check } from '../base/shape.js'
import type { AuthRules } from './auth-messages.js'
import { areClusterLines } from './cluster-log-messages.js'
import type { ShardSettings, ShardWorkerData } from './messages.js'
import type { ProposalRules } from './proposal-messages.js'

const isMemory: Check<SharedArrayBuffer> = (value) => value instanceof SharedArrayBuffer

const isSettings = members<ShardSettings>({
  shard: isNumber,
  path: isText,
  masterSeed: isBytes,
  recordBytesMax: isNumber,
  signing: oneOf('record', 'group'),
  auth: members<AuthRules>({
    lockout: members<LockoutPolicy>({ maxAttempts: isNumber, durationSecs: isNumber }),
    refreshExpirySecs: isNumber,
    jwtExpirySecs: isNumber,
    requireEmailVerify: isFlag,
    metadataBytesMax: isNumber,
    tokenEra: isNumber,
  }),
  proposals: members<ProposalRules>({ governedAutoApproveSecs: isNumber }),
  node: optional(isText),
})

/** Whether a value is what the thread of a shard worker is given. */
export const isShardWorkerData: Check<ShardWorkerData> = members<ShardWorkerData>({
  settings: isSettings,
  heartbeat: isMemory,
  lines: optional(areClusterLines),
})
