import { setTimeout as pause } from 'node:timers/promises'
import type { Shards } from '../../dispatch/links/shards.js'
import type { ServerStatus } from '../../server/state.js'
import type { ClusterNode } from './node.js'

/** Pause between two checks whether the node reaches all shards, milliseconds. */
const LOOK_MS = 20

interface StandbyParts {
  shards: Pick<Shards, 'leaseRefusal'>
  standing: ServerStatus
  /** Ends the wait. */
  signal: AbortSignal
  /** Starts listening as a standby, which refers clients to the other nodes. */
  openStandby(): Promise<void>
}

/**
 * Waits until every shard is served, by this node or by another one over a link. While others serve, the node
 * listens as a standby.
 * @throws the reason of the signal
 */
export async function untilServed(
  cluster: Pick<ClusterNode, 'hasOthers' | 'refuses' | 'refusal'>,
  { shards, standing, signal, openStandby }: StandbyParts,
): Promise<void> {
  while (shards.leaseRefusal() !== undefined) {
    if ((cluster.hasOthers || cluster.refuses) && standing.standbyRefusal === undefined) {
      standing.standbyRefusal = () => cluster.refusal
      await openStandby()
    }
    signal.throwIfAborted()
    await pause(LOOK_MS)
  }
}
