import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { ShardMemory } from '../../protocol/shard-memory.js'

/** A front's connection to a thread of a shard: in this process, or over the link to another node. */
export interface ShardConnection {
  /** The number that the front has there. */
  readonly front: number
  /** A later thread of the shard has a higher one, whichever node it is of. */
  readonly term: number
  readonly memory: ShardMemory
  /** Until when its answers may be passed on; undefined for a server that is not a node of a cluster. */
  readonly lease: LeaseMemory | undefined
  post(frame: ArrayBuffer): void
  /** The front receives nothing more from it. */
  close?(): void
  /** It is about to end, for another node to have the shard. */
  isLeaving?: boolean
  /** It has ended, or was closed. */
  isOver?: boolean
  /** Frames that came before the front was attached to it. */
  early?: ArrayBuffer[]
}
