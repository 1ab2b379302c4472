import { SharedTable, type SharedTableMemory } from './shared-table.js'

/** Counts how much of something each principal has, in one front or across all fronts. */
export type QuotaCounts = Pick<PrincipalQuotas, 'take' | 'add' | 'hasCapacity' | 'release'>

/** Counts how much of something each principal has, up to a quota. */
export class PrincipalQuotas {
  readonly #max: number
  readonly #taken = new Map<string, number>()

  /** @param max the quota of one principal */
  constructor(max: number) {
    this.#max = max
  }

  /** Adds to a principal's count. Returns false, and adds nothing, if that would exceed the quota. */
  take(principalId: string, count = 1): boolean {
    const taken = (this.#taken.get(principalId) ?? 0) + count
    if (taken > this.#max) return false
    this.#taken.set(principalId, taken)
    return true
  }

  /** Adds to a principal's count, even beyond the quota. */
  add(principalId: string, count: number): void {
    this.#taken.set(principalId, (this.#taken.get(principalId) ?? 0) + count)
  }

  hasCapacity(principalId: string): boolean {
    return (this.#taken.get(principalId) ?? 0) < this.#max
  }

  release(principalId: string, count = 1): void {
    const left = (this.#taken.get(principalId) ?? 0) - count
    if (left > 0) this.#taken.set(principalId, left)
    else this.#taken.delete(principalId)
  }
}

/** Counts how much of something each principal has, across all fronts of a process. */
export class SharedPrincipalQuotas implements QuotaCounts {
  readonly #max: number
  readonly #table: SharedTable

  /** @param max the quota of one principal */
  constructor(max: number, memory: SharedTableMemory) {
    this.#max = max
    this.#table = new SharedTable(memory)
  }

  take(principalId: string, count = 1): boolean {
    return this.#table.withSlot(principalId, (slot) => {
      const taken = (slot.value ?? 0) + count
      if (taken > this.#max || slot.isFull) return false
      slot.set(taken)
      return true
    })
  }

  add(principalId: string, count: number): void {
    this.#table.withSlot(principalId, (slot) => {
      slot.set((slot.value ?? 0) + count)
    })
  }

  hasCapacity(principalId: string): boolean {
    return this.#table.withSlot(principalId, ({ value }) => (value ?? 0) < this.#max)
  }

  release(principalId: string, count = 1): void {
    this.#table.withSlot(principalId, (slot) => {
      const left = (slot.value ?? 0) - count
      if (left > 0) slot.set(left)
      else slot.remove()
    })
  }
}

/** A counter that a limit is checked against, of one front or of all. */
export interface Count {
  readonly value: number
  /** @returns the new value */
  add(change: number): number
}

export class LocalCount implements Count {
  value = 0

  add(change: number): number {
    this.value += change
    return this.value
  }
}

/** A counter that all fronts of a process share. */
export class SharedCount implements Count {
  readonly #words: Int32Array
  readonly #at: number

  /** @param at index of its word */
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
