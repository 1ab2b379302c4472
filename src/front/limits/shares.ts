/** How much of something each principal has, counted by one front or by all. */
export type ShareCounts = Pick<Shares, 'take' | 'add' | 'has' | 'give'>

/** How much of something each principal has; none may have more than its share. */
export class Shares {
  readonly #max: number
  readonly #taken = new Map<string, number>()

  /** @param max what one principal may have */
  constructor(max: number) {
    this.#max = max
  }

  /** Takes some more; false, and nothing is taken, if that would exceed the share. */
  take(principalId: string, count = 1): boolean {
    const taken = (this.#taken.get(principalId) ?? 0) + count
    if (taken > this.#max) return false
    this.#taken.set(principalId, taken)
    return true
  }

  /** Counts what somebody already has, even beyond the share. */
  add(principalId: string, count: number): void {
    this.#taken.set(principalId, (this.#taken.get(principalId) ?? 0) + count)
  }

  /** Whether a principal has less than its share. */
  has(principalId: string): boolean {
    return (this.#taken.get(principalId) ?? 0) < this.#max
  }

  /** Gives back what was taken. */
  give(principalId: string, count = 1): void {
    const left = (this.#taken.get(principalId) ?? 0) - count
    if (left > 0) this.#taken.set(principalId, left)
    else this.#taken.delete(principalId)
  }
}
