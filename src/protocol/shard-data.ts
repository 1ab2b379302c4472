import type { MessagePort } from 'node:worker_threads'
import type { LockoutPolicy } from '../auth/lockout.js'
import {
  hasKind,
  isBytes,
  isFlag,
  isNumber,
  isText,
  members,
  oneOf,
  optional,
  type Check,
} from '../base/shape.js'
import type { AuthRules } from './auth-messages.js'
import { areClusterLines, type ClusterLines } from './cluster-log-messages.js'
import type { ShardSettings } from './messages.js'
import type { ProposalRules } from './proposal-messages.js'

/** What the thread of a shard worker is given. */
export interface ShardWorkerData {
  settings: ShardSettings
  /** Memory of its `Heartbeat`. */
  heartbeat: SharedArrayBuffer
  /** That of its `ShardMemory`. */
  shared: SharedArrayBuffer
  /** To the log of the cluster. */
  lines?: ClusterLines
}

/** Has a shard talk to one more front. */
export interface FrontJoins {
  kind: 'front'
  front: number
  port: MessagePort
}

/** The first message of a shard's thread: its store is open. */
export interface ShardReady {
  kind: 'ready'
  /** Higher than that of any thread of the shard before: where the owner opened its log, in a cluster. */
  term: number
}

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

/** Whether a value is what the thread of a shard worker is given. */
export const isShardWorkerData: Check<ShardWorkerData> = members<ShardWorkerData>({
  settings: isSettings,
  heartbeat: isMemory,
  shared: isMemory,
  lines: optional(areClusterLines),
})

/** Whether a message to a shard worker is that it talks to one more front. */
export const isFrontJoins: Check<FrontJoins> = hasKind

/** Whether a message of a shard worker is its first. */
export const isShardReady: Check<ShardReady> = hasKind
