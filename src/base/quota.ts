import { assert } from './assert.js'

/** What owners hold of something limited. */
export interface Holdings {
  /** What all owners hold together. */
  readonly total: number
  /**
   * Changes what one owner holds.
   * @param next returns what it holds from now on; undefined to change nothing
   * @returns whether it was changed; false as well if there is no space for another owner
   */
  change(owner: string, next: (held: number, total: number) => number | undefined): boolean
}

/** The holdings of one thread. */
class LocalHoldings implements Holdings {
  readonly #held = new Map<string, number>()
  total = 0

  change(owner: string, next: (held: number, total: number) => number | undefined): boolean {
    const held = this.#held.get(owner) ?? 0
    const after = next(held, this.total)
    if (after === undefined) return false
    this.total += after - held
    if (after > 0) this.#held.set(owner, after)
    else this.#held.delete(owner)
    return true
  }
}

/**
 * Limits what owners hold, in total and each: places, or bytes that stay in memory as long as clients are slow.
 * An owner is a principal, or the address of an unknown client.
 */
export class Quota {
  readonly #max: number
  readonly #perOwnerMax: number
  readonly #holdings: Holdings

  /** @param holdings shared by several threads; by default those of this thread */
  constructor(limits: { max?: number; perOwnerMax?: number }, holdings: Holdings = new LocalHoldings()) {
    this.#max = limits.max ?? Infinity
    this.#perOwnerMax = limits.perOwnerMax ?? Infinity
    this.#holdings = holdings
  }

  /** What all owners hold together. */
  get total(): number {
    return this.#holdings.total
  }

  /** Whether all owners together hold as much as they may. */
  get isFull(): boolean {
    return this.total >= this.#max
  }

  /** Returns false, and reserves nothing, if that would exceed a limit. */
  reserve(owner: string, amount = 1): boolean {
    return this.#holdings.change(owner, (held, total) =>
      held + amount <= this.#perOwnerMax && total + amount <= this.#max ? held + amount : undefined,
    )
  }

  /**
   * Reserves even beyond the limits, for what is there already; check `hasCapacity` before more is added.
   * @returns whether that is within the limits
   */
  reserveBeyond(owner: string, amount = 1): boolean {
    if (this.reserve(owner, amount)) return true
    const isReserved = this.#holdings.change(owner, (held) => held + amount)
    assert(isReserved, 'there is space for each owner')
    return false
  }

  release(owner: string, amount = 1): void {
    this.#holdings.change(owner, (held) => Math.max(0, held - amount))
  }

  /** Whether both the owner and the total are below their limits. */
  hasCapacity(owner: string): boolean {
    let found = false
    this.#holdings.change(owner, (held, total) => {
      found = held < this.#perOwnerMax && total < this.#max
      return undefined
    })
    return found
  }
}
