import { assert } from './assert.js'

/** What holders hold of something limited. */
export interface Holdings {
  /** What all holders hold together. */
  readonly total: number
  /**
   * Changes what one holder holds.
   * @param next returns what it holds from now on; undefined to change nothing
   * @returns whether it was changed; false as well if there is no space for another holder
   */
  change(holder: string, next: (held: number, total: number) => number | undefined): boolean
}

/** The holdings of one thread. */
class LocalHoldings implements Holdings {
  readonly #held = new Map<string, number>()
  total = 0

  change(holder: string, next: (held: number, total: number) => number | undefined): boolean {
    const held = this.#held.get(holder) ?? 0
    const after = next(held, this.total)
    if (after === undefined) return false
    this.total += after - held
    if (after > 0) this.#held.set(holder, after)
    else this.#held.delete(holder)
    return true
  }
}

/**
 * Limits what holders have, in total and each: places, or bytes that stay in memory as long as clients are slow.
 * A holder is a principal, or the address of an unknown client.
 */
export class Quota {
  readonly #max: number
  readonly #perHolderMax: number
  readonly #holdings: Holdings

  /** @param holdings shared by several threads; by default those of this thread */
  constructor(limits: { max?: number; perHolderMax?: number }, holdings: Holdings = new LocalHoldings()) {
    this.#max = limits.max ?? Infinity
    this.#perHolderMax = limits.perHolderMax ?? Infinity
    this.#holdings = holdings
  }

  /** What all holders hold together. */
  get total(): number {
    return this.#holdings.total
  }

  /** Whether all holders together hold as much as they may. */
  get isFull(): boolean {
    return this.total >= this.#max
  }

  /** Returns false, and reserves nothing, if that would exceed a limit. */
  reserve(holder: string, amount = 1): boolean {
    return this.#holdings.change(holder, (held, total) =>
      held + amount <= this.#perHolderMax && total + amount <= this.#max ? held + amount : undefined,
    )
  }

  /**
   * Reserves even beyond the limits, for what is there already; check `hasCapacity` before more is added.
   * @returns whether that is within the limits
   */
  reserveBeyond(holder: string, amount = 1): boolean {
    if (this.reserve(holder, amount)) return true
    const isReserved = this.#holdings.change(holder, (held) => held + amount)
    assert(isReserved, 'there is space for each holder')
    return false
  }

  release(holder: string, amount = 1): void {
    this.#holdings.change(holder, (held) => Math.max(0, held - amount))
  }

  /** Whether both the holder and the total are below their limits. */
  hasCapacity(holder: string): boolean {
    let found = false
    this.#holdings.change(holder, (held, total) => {
      found = held < this.#perHolderMax && total < this.#max
      return undefined
    })
    return found
  }
}
