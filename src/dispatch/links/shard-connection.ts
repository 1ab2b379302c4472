import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { ShardMemory } from '../../protocol/shard-memory.js'

/** A front's connection to a shard thread, in this process or over the link to another node. */
export interface ShardConnection {
  /** The number of the front at that thread. */
  readonly front: number
  /** A later thread of the shard has a higher term, on any node. */
  readonly term: number
  readonly memory: ShardMemory
  /** Answers may be delivered only while this lease holds; undefined outside a cluster. */
  readonly lease: LeaseMemory | undefined
  /** Whether the data disk of another node, to which this connection goes, is nearly full. */
  readonly isReadOnly?: boolean
  post(frame: ArrayBuffer): void
  /** Ends the connection: the front receives no more frames. */
  close?(): void
  /** True when the thread is about to end so that another node can open the shard. */
  isLeaving?: boolean
  /** True when the thread has ended or the connection was closed. */
  isOver?: boolean
  /** Frames that arrived before the front was attached. */
  early?: ArrayBuffer[]
}
