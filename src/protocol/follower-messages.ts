import { hasKind, isBytes, isNumber, isText, members, type Check } from '../base/shape.js'
import type { ShardLine } from './cluster-log-messages.js'

/* What the main thread of a node and the thread that follows the logs of shards say to each other. */

/** What that thread is started with. */
export interface FollowerSettings {
  masterSeed: Uint8Array
  /** The cluster's id, 32 hex digits. */
  cluster: string
  /** That of the node's lease (lease-memory.ts), and its length. */
  lease: SharedArrayBuffer
  leaseMs: number
}

export const isFollowerSettings: Check<FollowerSettings> = members<FollowerSettings>({
  masterSeed: isBytes,
  cluster: isText,
  lease: (value): value is SharedArrayBuffer => value instanceof SharedArrayBuffer,
  leaseMs: isNumber,
})

/** What it is told. */
export type FollowerOrder =
  /** Keep a store up to its shard's log. Nobody else has it open. */
  | { kind: 'follow'; path: string; line: ShardLine }
  /** Close it, for this node to open the shard, or to keep its store no more; answered by `released`. */
  | { kind: 'release'; shard: number }
  /** Remove a store that nobody has open. */
  | { kind: 'remove'; path: string }
  /** Close all of them and end. */
  | { kind: 'stop' }

export const isFollowerOrder: Check<FollowerOrder> = hasKind

/** What it tells. */
export type FollowerTold =
  /**
   * A store has what its log had so many milliseconds ago, or more, up to a segment; which node wrote that last, whether it has given the
   * shard up, and whether it has not and is alive.
   */
  | {
      kind: 'atEnd'
      shard: number
      segment: number
      owner: string
      incarnation: number
      isClosed: boolean
      isOwned: boolean
      ageMs: number
    }
  /** A store was made from its log, and the one that was there moved to a place. */
  | { kind: 'built'; shard: number; place: string | undefined }
  /** A log lacks what this node knows to be durable. */
  | { kind: 'lost'; shard: number; reason: string }
  /** A log could not be read, or a store not be written; it is tried again. */
  | { kind: 'failed'; shard: number; reason: string }
  /** A store is closed. */
  | { kind: 'released'; shard: number }

export const isFollowerTold: Check<FollowerTold> = hasKind
