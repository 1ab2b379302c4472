import { assert } from '../../../src/base/assert.js'
import { PREFIX_LIMIT, doubleAt } from './format.js'

const EMPTY = -1

/**
 * The newest entries, which are not in a run yet: an open-addressing table of two typed arrays, so that
 * adding an entry allocates nothing. Single entries are never removed, so equal prefixes stay in insertion
 * order in their probe sequence.
 */
export class HashMemtable {
  #prefixes: Float64Array
  #locations: Float64Array
  #slotMask: number
  #slotScale: number
  #entriesMax: number
  #entries = 0

  constructor(entriesMax: number) {
    const slots = 2 ** Math.ceil(Math.log2(entriesMax * 2))
    this.#prefixes = new Float64Array(slots).fill(EMPTY)
    this.#locations = new Float64Array(slots)
    this.#slotMask = slots - 1
    this.#slotScale = slots / PREFIX_LIMIT
    this.#entriesMax = entriesMax
  }

  get entries(): number {
    return this.#entries
  }

  /** Adds an entry. Hashes are uniform, so the top bits of the prefix choose the slot. */
  add(prefix: number, location: number): void {
    assert(this.#entries < this.#entriesMax, 'commitStep is called before the memtable is full')
    const prefixes = this.#prefixes
    let slot = (prefix * this.#slotScale) | 0
    while (prefixes[slot] !== EMPTY) slot = (slot + 1) & this.#slotMask
    prefixes[slot] = prefix
    this.#locations[slot] = location
    this.#entries += 1
  }

  /** Appends the locations of `prefix` to `found`, in the order in which they were added. */
  collect(prefix: number, found: number[]): void {
    const prefixes = this.#prefixes
    let slot = (prefix * this.#slotScale) | 0
    for (let stored = prefixes[slot]; stored !== EMPTY; stored = prefixes[slot]) {
      if (stored === prefix) found.push(doubleAt(this.#locations, slot))
      slot = (slot + 1) & this.#slotMask
    }
  }

  /** Appends the locations of the prefixes from `low` to `high` to `found`. */
  collectBetween(low: number, high: number, found: number[]): void {
    const lastSlot = (high * this.#slotScale) | 0
    for (let at = (low * this.#slotScale) | 0; ; at += 1) {
      const slot = at & this.#slotMask
      const stored = doubleAt(this.#prefixes, slot)
      // An entry is in its own slot or after it, without an empty slot in between.
      if (stored === EMPTY && at >= lastSlot) return
      if (stored >= low && stored <= high) found.push(doubleAt(this.#locations, slot))
    }
  }

  /**
   * Calls `visit` with each entry, sorted by prefix; equal prefixes in the order in which they were added.
   */
  visitSorted(visit: (prefix: number, location: number) => void): void {
    // Sorting numbers is native code; sorting pairs would call back into JS for each comparison.
    const sorted = this.#sortedPrefixes()
    const locations: number[] = []
    for (let at = 0; at < sorted.length; at += locations.length) {
      const prefix = doubleAt(sorted, at)
      locations.length = 0
      this.collect(prefix, locations)
      for (const location of locations) visit(prefix, location)
    }
  }

  #sortedPrefixes(): Float64Array {
    const sorted = new Float64Array(this.#entries)
    let entries = 0
    for (const prefix of this.#prefixes) {
      if (prefix === EMPTY) continue
      sorted[entries] = prefix
      entries += 1
    }
    return sorted.sort()
  }

  clear(): void {
    this.#prefixes.fill(EMPTY)
    this.#entries = 0
  }
}
