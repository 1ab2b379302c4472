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
import { isShardLine } from './cluster-log-messages.js'

/*
 * What the main thread of a node and the thread that follows the logs of shards say to each other; each shape is declared by
 * its check.
 */

const isMemory: Check<SharedArrayBuffer> = (value) => value instanceof SharedArrayBuffer

/** What that thread is started with. */
export const isFollowerSettings = fields({
  masterSeed: isBytes,
  /** The cluster's id, 32 hex digits. */
  cluster: isText,
  /** That of the node's lease (lease-memory.ts), and its length. */
  lease: isMemory,
  leaseMs: isNumber,
})
export type FollowerSettings = Checked<typeof isFollowerSettings>

/** What it is told. */
export const isFollowerOrder = anyOf(
  /** Keep a store up to its shard's log. Nobody else has it open. */
  fields({ kind: oneOf('follow'), path: isText, line: isShardLine }),
  /** Close it, for this node to open the shard, or to keep its store no more; answered by `released`. */
  fields({ kind: oneOf('release'), shard: isNumber }),
  /** Remove a store that nobody has open. */
  fields({ kind: oneOf('remove'), path: isText }),
  /** Close all of them and end. */
  fields({ kind: oneOf('stop') }),
)
export type FollowerOrder = Checked<typeof isFollowerOrder>

/** What it tells. */
export const isFollowerReport = anyOf(
  /**
   * A store has what its log had so many milliseconds ago, or more, up to a segment; which node wrote that last, whether it has given the
   * shard up, and whether it has not and is alive.
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
  /** A store was made from its log, and the one that was there moved to a place. */
  fields({ kind: oneOf('built'), shard: isNumber, place: optional(isText) }),
  /** A log lacks what this node knows to be durable. */
  fields({ kind: oneOf('lost'), shard: isNumber, reason: isText }),
  /** A log could not be read, or a store not be written; it is tried again. */
  fields({ kind: oneOf('failed'), shard: isNumber, reason: isText }),
  /** A store is closed. */
  fields({ kind: oneOf('released'), shard: isNumber }),
)
export type FollowerReport = Checked<typeof isFollowerReport>
