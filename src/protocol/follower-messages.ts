import {
  anyOf,
  type Check,
  type Checked,
  fields,
  isBytes,
  isFlag,
  isNumber,
  isText,
  oneOf,
  optional,
} from '../base/shape.js'
import { isLogChannel } from './cluster-log-messages.js'

/*
 * Messages between the main thread of a node and the thread that follows the logs of shards. Each shape is
 * declared by its check.
 */

const isMemory: Check<SharedArrayBuffer> = (value) => value instanceof SharedArrayBuffer

export const isFollowerSettings = fields({
  masterSeed: isBytes,
  /** The cluster's id, 32 hex digits. */
  cluster: isText,
  /** The memory of the node's lease (lease-memory.ts), and its duration. */
  lease: isMemory,
  leaseMs: isNumber,
})
export type FollowerSettings = Checked<typeof isFollowerSettings>

export const isFollowerOrder = anyOf(
  /** Keep a store up to date with its shard's log. No other thread has the store open. */
  fields({ kind: oneOf('follow'), path: isText, channel: isLogChannel }),
  /** Close a store, because this node opens the shard or no longer follows it. Answered by `released`. */
  fields({ kind: oneOf('release'), shard: isNumber }),
  /** Remove a store that no thread has open. */
  fields({ kind: oneOf('remove'), path: isText }),
  /** Close all stores and end. */
  fields({ kind: oneOf('stop') }),
)
export type FollowerOrder = Checked<typeof isFollowerOrder>

export const isFollowerReport = anyOf(
  /**
   * A store contains its log as of `ageMs` ago, or later, up to a segment. `owner` and `incarnation` wrote
   * that segment; `isClosed` if that node has released the shard, `isOwned` if it has not and is alive.
   */
  fields({
    kind: oneOf('atEnd'),
    shard: isNumber,
    segment: isNumber,
    owner: isText,
    incarnation: isNumber,
    isClosed: isFlag,
    isOwned: isFlag,
    ageMs: isNumber,
  }),
  /** A store was rebuilt from its log, and the old one moved to `place`. */
  fields({ kind: oneOf('built'), shard: isNumber, place: optional(isText) }),
  /** A log lacks segments that this node knows to be durable. */
  fields({ kind: oneOf('lost'), shard: isNumber, reason: isText }),
  /** A log could not be read or a store not be written; the follower retries. */
  fields({ kind: oneOf('failed'), shard: isNumber, reason: isText }),
  fields({ kind: oneOf('released'), shard: isNumber }),
)
export type FollowerReport = Checked<typeof isFollowerReport>
