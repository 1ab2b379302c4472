import { MessagePort } from 'node:worker_threads'
import type { LockoutPolicy } from '../auth/lockout.js'
import {
  type Check,
  type Checked,
  fields,
  isBytes,
  isFlag,
  isNumber,
  isText,
  members,
  oneOf,
  optional,
} from '../base/shape.js'
import type { AuthRules } from './auth-messages.js'
import { areClusterLines } from './cluster-log-messages.js'
import type { ShardSettings } from './messages.js'
import type { ProposalRules } from './proposal-messages.js'

/** Has a shard finish what it was sent, close its store and end. */
export const closeShard = 'close'

/** The same, and say in the log of the cluster that another node may have it. */
export const handOverShard = 'handOver'

/** Has it end at once, where it stands: the process ends, or only a new one helps. */
export const endShard = 'end'

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
})

/** What the thread of a shard worker is given. */
export const isShardWorkerData = fields({
  settings: isSettings,
  /** Memory of its `Heartbeat`. */
  heartbeat: isMemory,
  /** That of its `ShardMemory`. */
  shared: isMemory,
  /** To the log of the cluster. */
  lines: optional(areClusterLines),
})
export type ShardWorkerData = Checked<typeof isShardWorkerData>

const isPort: Check<MessagePort> = (value) => value instanceof MessagePort

/** Has a shard talk to one more front. */
export const isFrontJoins = fields({ kind: oneOf('front'), front: isNumber, port: isPort })
export type FrontJoins = Checked<typeof isFrontJoins>

/**
 * The first message of a shard's thread: its store is open. `term`: higher than that of any thread of the shard before: where
 * the owner opened its log, in a cluster.
 */
export const isShardReady = fields({ kind: oneOf('ready'), term: isNumber })
export type ShardReady = Checked<typeof isShardReady>
