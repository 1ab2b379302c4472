import { SharedTable, type SharedTableMemory } from './shared-table.js'
import type { ShareCounts } from './shares.js'

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
