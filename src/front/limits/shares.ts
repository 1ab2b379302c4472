import { SharedTable, type SharedTableMemory } from './shared-table.js'

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

/** How much of something each principal has, counted once for all fronts of a process. */
export class SharedShares implements ShareCounts {
  readonly #max: number
  readonly #table: SharedTable

  /** @param max what one principal may have */
  constructor(max: number, memory: SharedTableMemory) {
    this.#max = max
    this.#table = new SharedTable(memory)
  }

  take(principalId: string, count = 1): boolean {
    return this.#table.at(principalId, (place) => {
      const taken = (place.value ?? 0) + count
      if (taken > this.#max || place.isFull) return false
      place.set(taken)
      return true
    })
  }

  add(principalId: string, count: number): void {
    this.#table.at(principalId, (place) => {
      place.set((place.value ?? 0) + count)
    })
  }

  has(principalId: string): boolean {
    return this.#table.at(principalId, ({ value }) => (value ?? 0) < this.#max)
  }

  give(principalId: string, count = 1): void {
    this.#table.at(principalId, (place) => {
      const left = (place.value ?? 0) - count
      if (left > 0) place.set(left)
      else place.remove()
    })
  }
}

/** A count that bounds something, of one front or of all of them. */
export interface Count {
  readonly value: number
  /** @returns the new value */
  add(change: number): number
}

/** A count of one front. */
export class OwnCount implements Count {
  value = 0

  add(change: number): number {
    this.value += change
    return this.value
  }
}

/** A count that all fronts of a process share. */
export class SharedCount implements Count {
  readonly #words: Int32Array
  readonly #at: number

  /** @param at its place among the words */
  constructor(words: Int32Array, at: number) {
    this.#words = words
    this.#at = at
  }

  get value(): number {
    return Atomics.load(this.#words, this.#at)
  }

  add(change: number): number {
    return Atomics.add(this.#words, this.#at, change) + change
  }
}
