import { limits } from '../base/limits.js'
import type { Shards } from './shards.js'

/** What the clock of proposals needs. */
export interface ProposalClockParts {
  shards: Shards
  /** Whether a shard is of this node: others look at theirs. */
  isOwn(shard: number): boolean
  /** True while nothing may be written. */
  readOnly(): boolean
}

/**
 * Makes the shards look for proposals that are due. A shard waits only for its next frame, so its timers are in its
 * store, and looking at them is a command (docs/adr/0014-proposals.md).
 */
export class ProposalClock {
  readonly #parts: ProposalClockParts
  #timer: NodeJS.Timeout | undefined
  /** Shards that have not answered the last look yet. */
  readonly #asked = new Set<number>()

  constructor(parts: ProposalClockParts) {
    this.#parts = parts
  }

  /** Starts looking. Resolves when everything is decided that came due while the server was off. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => this.#tick(), limits.proposalSweepMs)
    if (this.#parts.readOnly()) return
    const { shards, isOwn } = this.#parts
    const all = Array.from({ length: shards.count }, (_none, shard) => shard)
    await Promise.all(all.filter((shard) => isOwn(shard)).map((shard) => this.#sweep(shard)))
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    if (this.#parts.readOnly()) return
    for (let shard = 0; shard < this.#parts.shards.count; shard++) {
      if (!this.#asked.has(shard) && this.#parts.isOwn(shard)) void this.#sweep(shard)
    }
  }

  /**
   * Sweeps one shard until nothing that is due is left. A shard that cannot answer now is asked again at the next look.
   */
  async #sweep(shard: number): Promise<void> {
    this.#asked.add(shard)
    for (let left = true; left;) {
      const outcome = await this.#parts.shards.askOne(shard, { kind: 'proposalsSweep', options: {} })
      left = outcome.kind === 'swept' && outcome.left
    }
    this.#asked.delete(shard)
  }
}
