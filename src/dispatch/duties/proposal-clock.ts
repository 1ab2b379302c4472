import { limits } from '../../base/limits/limits.js'
import type { Refusal } from '../../base/errors.js'
import type { ProposalCursor, Standing } from '../../protocol/proposal-messages.js'
import { endAuthors } from '../ended-authors.js'
import type { Shards } from '../links/shards.js'

export interface ProposalClockParts {
  shards: Shards
  /** Whether this node owns a shard. Other nodes sweep their own shards. */
  isOwn(shard: number): boolean
  readOnly(): boolean
  /** Reads the current state of keys and users. */
  standings(principals: readonly string[]): Promise<Standing[] | Refusal>
}

/**
 * Makes the shards process proposals that are due. A shard has no timers: due times are in its store, and a
 * command makes it check them (docs/adr/0014-proposals.md).
 */
export class ProposalClock {
  readonly #parts: ProposalClockParts
  #timers: NodeJS.Timeout[] = []
  /** Shards that have not answered the last sweep. */
  readonly #sweeping = new Set<number>()

  constructor(parts: ProposalClockParts) {
    this.#parts = parts
  }

  /** Starts the sweeps. Resolves when all proposals that came due while the server was off are decided. */
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
      if (!this.#sweeping.has(shard) && this.#parts.isOwn(shard)) void this.#sweep(shard)
    }
  }

  /** Sweeps a shard until no due proposal remains, or it cannot continue now: the next tick retries. */
  async #sweep(shard: number): Promise<void> {
    this.#sweeping.add(shard)
    let standings: Standing[] | Refusal = []
    for (let left = true; left && !('code' in standings);) {
      const outcome = await this.#parts.shards.requestShard(shard, {
        kind: 'proposalsSweep',
        standings,
        options: {},
      })
      if (outcome.kind !== 'swept') break
      const { authors = [] } = outcome
      left = outcome.left || authors.length > 0
      standings = await this.#parts.standings(authors)
    }
    this.#sweeping.delete(shard)
  }

  /**
   * Ends open proposals and approvals of deleted or expired keys and users that were not ended at the time.
   */
  async #endAuthors(): Promise<void> {
    const { shards, isOwn, readOnly } = this.#parts
    for (let shard = 0; shard < shards.count && !readOnly(); shard++) {
      if (isOwn(shard)) await this.#endAuthorsOf(shard)
    }
  }

  async #endAuthorsOf(shard: number): Promise<void> {
    const { shards, standings } = this.#parts
    let after: ProposalCursor | undefined
    do {
      const command = { kind: 'proposalAuthors', ...(after !== undefined && { after }) } as const
      const page = await shards.requestShard(shard, command)
      if (page.kind !== 'authors') return
      const found = await standings(page.principals)
      if ('code' in found) return
      const ended = found.filter(({ valid }) => !valid).map(({ principal }) => principal)
      if (ended.length > 0) await endAuthors(shards, ended, shard)
      after = page.next
    } while (after !== undefined)
  }
}
