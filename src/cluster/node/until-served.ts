import { setTimeout as pause } from 'node:timers/promises'
import type { Shards } from '../../dispatch/links/shards.js'
import type { Standing } from '../../server/state.js'
import type { ClusterNode } from './node.js'

/** Pause between two looks whether a node reaches all shards, milliseconds. */
const LOOK_MS = 20

/** What a node waits with. */
interface Waiting {
  shards: Pick<Shards, 'leaseRefusal'>
  standing: Standing
  /** Ends the waiting. */
  signal: AbortSignal
  /** Takes requests, to tell clients that other nodes serve. */
  standBy(): Promise<void>
}

/**
 * Waits until every shard is served: by this node, or by another one over a link. While others serve, the node listens as a
 * standby, so that its clients are told where.
 * @throws the reason of the signal
 */
export async function untilServed(
  cluster: Pick<ClusterNode, 'hasOthers' | 'refuses' | 'refusal'>,
  { shards, standing, signal, standBy }: Waiting,
): Promise<void> {
  while (shards.leaseRefusal() !== undefined) {
    if ((cluster.hasOthers || cluster.refuses) && standing.waiting === undefined) {
      standing.waiting = () => cluster.refusal
      await standBy()
    }
    signal.throwIfAborted()
    await pause(LOOK_MS)
  }
}
