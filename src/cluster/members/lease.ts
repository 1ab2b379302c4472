/*
 * When a node may answer, and when another node may be expelled: node liveness as in CockroachDB. All times
 * are in milliseconds of the node's own monotonic clock. Clocks of nodes need not agree, but their rates must
 * not differ by more than a tenth.
 */

/**
 * A node is expelled only after this multiple of its lease without a heartbeat: the margin for clock drift.
 */
export const LEASE_MARGIN = 1.1
export const HEARTBEATS_PER_LEASE = 5

/** A row of the table of nodes, as it was read. */
export interface Sighting {
  node: string
  incarnation: number
  heartbeat: number
  /** The lease of that node, if it is longer than the lease of the watching node. */
  leaseMs?: number
}

interface Seen extends Sighting {
  sinceMs: number
}

/** Tracks how long other nodes have missed their heartbeats. */
export class MissedHeartbeats {
  readonly #leaseMs: number
  readonly #seen = new Map<string, Seen>()

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /**
   * Takes the rows of the live nodes.
   * @param readAtMs when the read **had ended**: a heartbeat that it did not see cannot be older
   */
  observe(sightings: readonly Sighting[], readAtMs: number): void {
    const names = new Set(sightings.map(({ node }) => node))
    for (const node of this.#seen.keys()) if (!names.has(node)) this.#seen.delete(node)
    for (const sighting of sightings) {
      const before = this.#seen.get(sighting.node)
      const isSame = before?.incarnation === sighting.incarnation && before.heartbeat === sighting.heartbeat
      if (!isSame) this.#seen.set(sighting.node, { ...sighting, sinceMs: readAtMs })
    }
  }

  /**
   * A heartbeat of this node was not confirmed in time: the database may have been down for all nodes, so
   * missed heartbeats prove nothing.
   */
  forget(): void {
    this.#seen.clear()
  }

  /** Nodes that may be expelled, if their rows are still as they were last seen. */
  expired(nowMs: number): Sighting[] {
    const isOver = ({ sinceMs, leaseMs = 0 }: Seen) =>
      nowMs - sinceMs >= Math.max(leaseMs, this.#leaseMs) * LEASE_MARGIN
    return [...this.#seen.values()]
      .filter(isOver)
      .map(({ node, incarnation, heartbeat }): Sighting => ({ node, incarnation, heartbeat }))
  }
}
