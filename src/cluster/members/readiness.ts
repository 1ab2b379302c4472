/** The input of a decision. */
export interface ReadinessView {
  /** Monotonic clock, milliseconds. */
  nowMs: number
  /** Whether this node owns shards already. */
  ownsAny: boolean
  /** Whether its data disk is nearly full. */
  isFull: boolean
  /** How far its stores are behind the logs, milliseconds. */
  lagMs: number
  /**
   * The other live nodes: whether they own shards or are ready to, and whether this node has a link to them.
   */
  others: readonly { matters: boolean; isLinked: boolean }[]
}

/**
 * A node must be healthy for so many leases before it gets a share of the shards; otherwise each restart
 * would move shards.
 */
const LEASES = 3

/**
 * Decides whether a node may own a share of the shards. For several leases it must have been near the end of
 * the logs and linked to the nodes that own shards or may own some; if there are no such nodes, to all nodes.
 */
export class Readiness {
  readonly #afterMs: number
  /** Since when the node has been healthy, or unhealthy. */
  #healthySinceMs: number | undefined
  #unhealthySinceMs: number | undefined
  #isReady = false

  constructor(leaseMs: number) {
    this.#afterMs = LEASES * leaseMs
  }

  look({ nowMs, ownsAny, isFull, lagMs, others }: ReadinessView): boolean {
    const important = others.filter(({ matters }) => matters)
    const required = important.length > 0 || ownsAny ? important : others
    // The follower reports its lag several times a second.
    const isHealthy =
      !isFull && required.every(({ isLinked }) => isLinked) && (ownsAny || lagMs * LEASES < this.#afterMs)
    this.#healthySinceMs = isHealthy ? (this.#healthySinceMs ?? nowMs) : undefined
    this.#unhealthySinceMs = isHealthy ? undefined : (this.#unhealthySinceMs ?? nowMs)
    const ownsAlone = ownsAny && important.length === 0
    if (isFull) this.#isReady = false
    else if (ownsAlone || durationMs(this.#healthySinceMs, nowMs) >= this.#afterMs) this.#isReady = true
    else if (durationMs(this.#unhealthySinceMs, nowMs) >= this.#afterMs) this.#isReady = false
    return this.#isReady
  }
}

function durationMs(sinceMs: number | undefined, nowMs: number): number {
  return sinceMs === undefined ? -Infinity : nowMs - sinceMs
}
