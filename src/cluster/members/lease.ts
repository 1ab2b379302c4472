/*
 * When a node may answer, and when another one may be expelled: CockroachDB's way of node liveness. All times are of a
 * monotonic clock of the node itself, milliseconds; clocks of nodes need not agree, only run alike within a tenth.
 */

/** By how much longer than a lease a node has to be silent before it is expelled: clocks may differ by less. */
export const LEASE_MARGIN = 1.1
/** Beats of a lease. */
export const BEATS_PER_LEASE = 5

/** What a node's row in the table of nodes said. */
export interface Sighting {
  node: string
  incarnation: number
  beat: number
  /** Its own lease, where that is longer than that of who watches it. */
  leaseMs?: number
}

interface Seen extends Sighting {
  sinceMs: number
}

/** What one node knows of the silence of others. */
export class Silence {
  readonly #leaseMs: number
  readonly #seen = new Map<string, Seen>()

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /**
   * Takes what was read of the nodes that are alive.
   * @param readAtMs when the reading **had ended**: no beat that it did not see can be older
   */
  saw(sightings: readonly Sighting[], readAtMs: number): void {
    const names = new Set(sightings.map(({ node }) => node))
    for (const node of this.#seen.keys()) if (!names.has(node)) this.#seen.delete(node)
    for (const sighting of sightings) {
      const before = this.#seen.get(sighting.node)
      const isSame = before?.incarnation === sighting.incarnation && before.beat === sighting.beat
      if (!isSame) this.#seen.set(sighting.node, { ...sighting, sinceMs: readAtMs })
    }
  }

  /** An own beat was not confirmed in time: the database may have been away for all, so that silence says nothing. */
  forget(): void {
    this.#seen.clear()
  }

  /** Nodes that may be expelled, as they were last seen: only if their rows say that still. */
  expired(nowMs: number): Sighting[] {
    const isOver = ({ sinceMs, leaseMs = 0 }: Seen) =>
      nowMs - sinceMs >= Math.max(leaseMs, this.#leaseMs) * LEASE_MARGIN
    return [...this.#seen.values()]
      .filter(isOver)
      .map(({ node, incarnation, beat }) => ({ node, incarnation, beat }))
  }
}
