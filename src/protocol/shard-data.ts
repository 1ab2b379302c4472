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
import { areClusterChannels } from './cluster-log-messages.js'
import type { Signing } from './command-options.js'
import type { ProposalRules } from './proposal-messages.js'

/** Makes a shard finish its commands, close its store and end. */
export const closeShard = 'close'

/** The same, and record in the cluster log that another node may open the shard. */
export const transferShard = 'transfer'

/** Makes the shard thread exit immediately: the process ends, or only a new one helps. */
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

export const isShardWorkerData = fields({
  settings: isSettings,
  heartbeat: isMemory,
  shared: isMemory,
  channels: optional(areClusterChannels),
})
export type ShardWorkerData = Checked<typeof isShardWorkerData>

const isPort: Check<MessagePort> = (value) => value instanceof MessagePort

/** Connects a shard to one more front. */
export const isFrontJoins = fields({ kind: oneOf('front'), front: isNumber, port: isPort })
export type FrontJoins = Checked<typeof isFrontJoins>

/**
 * The first message of a shard thread: its store is open. `term` is higher than that of any earlier thread of
 * the shard; in a cluster, it is where the owner opened its log.
 */
export const isShardReady = fields({ kind: oneOf('ready'), term: isNumber })
export type ShardReady = Checked<typeof isShardReady>

export interface ShardSettings {
  shard: number
  path: string
  /** 32 bytes. */
  masterSeed: Uint8Array
  recordBytesMax: number
  signing: Signing
  auth: AuthRules
  proposals: ProposalRules
}
