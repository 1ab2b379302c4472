import { limits } from '../../base/limits/limits.js'
import type { Refusal } from '../../base/errors.js'
import type { ProposalPlace, Standing } from '../../protocol/proposal-messages.js'
import { endAuthors } from '../ended-authors.js'
import type { Shards } from '../links/shards.js'

/** What the clock of proposals needs. */
export interface ProposalClockParts {
  shards: Shards
  /** Whether a shard is of this node: others look at theirs. */
  isOwn(shard: number): boolean
  /** True while nothing may be written. */
  readOnly(): boolean
  /** What keys and users may still do. */
  standings(principals: readonly string[]): Promise<Standing[] | Refusal>
}

/**
 * Makes the shards look for proposals that are due. A shard waits only for its next frame, so its timers are in its
 * store, and looking at them is a command (docs/adr/0014-proposals.md).
 */
export class ProposalClock {
  readonly #parts: ProposalClockParts
  #timers: NodeJS.Timeout[] = []
  /** Shards that have not answered the last look yet. */
  readonly #asked = new Set<number>()

  constructor(parts: ProposalClockParts) {
    this.#parts = parts
  }

  /** Starts looking. Resolves when everything is decided that came due while the server was off. */
  async start(): Promise<void> {
    this.#timers = [
      setInterval(() => this.#tick(), limits.proposalSweepMs),
      setInterval(() => void this.#endAuthors(), limits.proposalAuthorsMs),
    ]
    if (this.#parts.readOnly()) return
    const { shards, isOwn } = this.#parts
    const all = Array.from({ length: shards.count }, (_none, shard) => shard)
    await Promise.all(all.filter((shard) => isOwn(shard)).map((shard) => this.#sweep(shard)))
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  #tick(): void {
    if (this.#parts.readOnly()) return
    for (let shard = 0; shard < this.#parts.shards.count; shard++) {
      if (!this.#asked.has(shard) && this.#parts.isOwn(shard)) void this.#sweep(shard)
    }
  }

  /**
   * Sweeps one shard until nothing that is due is left. A shard that cannot answer now is asked again at the next look,
   * and so is one whose proposals are of authors that cannot be looked up now.
   */
  async #sweep(shard: number): Promise<void> {
    this.#asked.add(shard)
    let standings: Standing[] | Refusal = []
    for (let left = true; left && !('code' in standings);) {
      const outcome = await this.#parts.shards.askOne(shard, {
        kind: 'proposalsSweep',
        standings,
        options: {},
      })
      if (outcome.kind !== 'swept') break
      const { authors = [] } = outcome
      left = outcome.left || authors.length > 0
      standings = await this.#parts.standings(authors)
    }
    this.#asked.delete(shard)
  }

  /** Ends what is open of keys and users that were deleted or have expired, where that was not done when they were. */
  async #endAuthors(): Promise<void> {
    const { shards, isOwn, readOnly } = this.#parts
    for (let shard = 0; shard < shards.count && !readOnly(); shard++) {
      if (isOwn(shard)) await this.#endAuthorsOf(shard)
    }
  }

  async #endAuthorsOf(shard: number): Promise<void> {
    const { shards, standings } = this.#parts
    let after: ProposalPlace | undefined
    do {
      const command = { kind: 'proposalAuthors', ...(after !== undefined && { after }) } as const
      const page = await shards.askOne(shard, command)
      if (page.kind !== 'authors') return
      const found = await standings(page.principals)
      if ('code' in found) return
      const ended = found.filter(({ valid }) => !valid).map(({ principal }) => principal)
      if (ended.length > 0) await endAuthors(shards, ended, shard)
      after = page.next
    } while (after !== undefined)
  }
}
