/** What a node looks at. */
export interface ReadinessView {
  /** By the monotonic clock, milliseconds. */
  nowMs: number
  /** It owns shards already. */
  ownsAny: boolean
  /** How far its stores are behind the logs, milliseconds. */
  lagMs: number
  /** The other nodes that are alive: whether they own shards, or are ready to, and whether this one has a link to them. */
  others: readonly { matters: boolean; isLinked: boolean }[]
}

/** Leases for which a node is alive, and has its links, before it takes a share of the shards: each restart would move some otherwise. */
const LEASES = 3

/**
 * Whether a node may own a share of the shards: for some leases it has been alive, near the end of the logs and with links to those
 * that own shards, or may. Where there are none such, it has to have links to all, since each of these may be the one.
 */
export class Readiness {
  readonly #afterMs: number
  /** Since when all has been well, or something has not. */
  #wellSinceMs: number | undefined
  #unwellSinceMs: number | undefined
  #isReady = false

  constructor(leaseMs: number) {
    this.#afterMs = LEASES * leaseMs
  }

  look({ nowMs, ownsAny, lagMs, others }: ReadinessView): boolean {
    const important = others.filter(({ matters }) => matters)
    const needed = important.length > 0 || ownsAny ? important : others
    // Who follows looks several times a second.
    const isWell = needed.every(({ isLinked }) => isLinked) && (ownsAny || lagMs * LEASES < this.#afterMs)
    this.#wellSinceMs = isWell ? (this.#wellSinceMs ?? nowMs) : undefined
    this.#unwellSinceMs = isWell ? undefined : (this.#unwellSinceMs ?? nowMs)
    const ownsAlone = ownsAny && important.length === 0
    if (ownsAlone || lastsFor(this.#wellSinceMs, nowMs) >= this.#afterMs) this.#isReady = true
    else if (lastsFor(this.#unwellSinceMs, nowMs) >= this.#afterMs) this.#isReady = false
    return this.#isReady
  }
}

function lastsFor(sinceMs: number | undefined, nowMs: number): number {
  return sinceMs === undefined ? -Infinity : nowMs - sinceMs
}
