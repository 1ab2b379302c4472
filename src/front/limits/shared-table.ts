import { hash } from 'node:crypto'
import { assert } from '../../base/assert.js'
import type { Holdings } from '../../base/quota.js'

/** The lock, the number of keys, and the position at which the next search for an evictable key starts. */
const HEAD_WORDS = 4

/** Milliseconds after which a thread checks the lock again if it was not woken. */
const LOCK_WAIT_MS = 5

/**
 * Memory of a table, and the secret with which keys are hashed so that clients cannot choose keys that
 * collide.
 */
export interface SharedTableMemory {
  memory: SharedArrayBuffer
  secret: string
  /** The most keys; at most half of the slots. */
  keysMax: number
}

/** Allocates memory for a table of at most `keysMax` keys. Unused pages take no physical memory. */
export function allocateTable(keysMax: number, secret: string): SharedTableMemory {
  const memory = new SharedArrayBuffer(HEAD_WORDS * 4 + 8 + slotsFor(keysMax) * 16)
  return { memory, secret, keysMax }
}

function slotsFor(keysMax: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(2, keysMax * 2)))
}

/**
 * A hash table from strings to numbers in memory that several threads share. A key is identified by 64 bits
 * of its keyed hash. A lock serializes access; the work under it takes less than a microsecond.
 */
export class SharedTable {
  readonly keysMax: number
  readonly #secret: string
  readonly #words: Int32Array
  /** Two words of hash for each slot; a free slot has 0 in both. */
  readonly #hashes: Int32Array
  readonly #values: Float64Array
  readonly #slots: number

  constructor({ memory, secret, keysMax }: SharedTableMemory) {
    this.keysMax = keysMax
    this.#secret = secret
    this.#slots = slotsFor(keysMax)
    this.#words = new Int32Array(memory, 0, HEAD_WORDS)
    this.#values = new Float64Array(memory, HEAD_WORDS * 4, this.#slots + 1)
    this.#hashes = new Int32Array(memory, HEAD_WORDS * 4 + 8 + this.#slots * 8, this.#slots * 2)
  }

  /** One more number, without a key; initially 0. Set it only within `withSlot`. */
  get spare(): number {
    return this.#values[this.#slots] ?? 0
  }

  set spare(value: number) {
    this.#values[this.#slots] = value
  }

  /** Runs `work` under the lock, with the key's slot, or the free slot where the key would be stored. */
  withSlot<Result>(key: string, work: (slot: TableSlot) => Result): Result {
    const digest = hash('sha256', this.#secret + key, 'buffer')
    const low = digest.readInt32LE(0)
    const high = digest.readInt32LE(4) | 1
    this.#lock()
    try {
      return work(this.#slotOf(low, high))
    } finally {
      Atomics.store(this.#words, 0, 0)
      Atomics.notify(this.#words, 0, 1)
    }
  }

  get size(): number {
    return Atomics.load(this.#words, 1)
  }

  #lock(): void {
    while (Atomics.compareExchange(this.#words, 0, 0, 1) !== 0) Atomics.wait(this.#words, 0, 1, LOCK_WAIT_MS)
  }

  #slotOf(low: number, high: number): TableSlot {
    let at = (low >>> 0) % this.#slots
    while (!this.#isFree(at) && !this.#has(at, low, high)) at = (at + 1) % this.#slots
    const isNew = this.#isFree(at)
    return {
      value: isNew ? undefined : this.#values[at],
      isFull: isNew && this.size >= this.keysMax,
      set: (value) => this.#put(at, [low, high], value),
      remove: () => this.#remove(at),
      evictOne: (mayEvict, probesMax) => this.#evictOne(mayEvict, probesMax) && this.#slotOf(low, high),
    }
  }

  #put(at: number, [low, high]: [number, number], value: number): void {
    if (this.#isFree(at)) {
      assert(this.size < this.keysMax, 'the table has at most keysMax keys')
      this.#hashes[at * 2] = low
      this.#hashes[at * 2 + 1] = high
      this.#words[1] = this.size + 1
    }
    this.#values[at] = value
  }

  /** Examines a few keys and removes the first that may be evicted. @returns whether one was removed */
  #evictOne(mayEvict: (value: number) => boolean, probesMax: number): boolean {
    for (let probes = 0; probes < Math.min(probesMax, this.#slots); probes++) {
      const at = (this.#words[2] ?? 0) % this.#slots
      this.#words[2] = (at + 1) % this.#slots
      if (this.#isFree(at) || !mayEvict(this.#values[at] ?? 0)) continue
      this.#remove(at)
      return true
    }
    return false
  }

  /** Frees a slot and moves later entries forward that lookups would otherwise no longer find. */
  #remove(from: number): void {
    if (this.#isFree(from)) return
    this.#words[1] = this.size - 1
    let free = from
    for (let at = (from + 1) % this.#slots; !this.#isFree(at); at = (at + 1) % this.#slots) {
      const home = ((this.#hashes[at * 2] ?? 0) >>> 0) % this.#slots
      const distance = (at - home + this.#slots) % this.#slots
      if (distance < (at - free + this.#slots) % this.#slots) continue
      this.#hashes.copyWithin(free * 2, at * 2, at * 2 + 2)
      this.#values[free] = this.#values[at] ?? 0
      free = at
    }
    this.#hashes[free * 2] = 0
    this.#hashes[free * 2 + 1] = 0
  }

  #isFree(at: number): boolean {
    return this.#hashes[at * 2 + 1] === 0
  }

  #has(at: number, low: number, high: number): boolean {
    return this.#hashes[at * 2] === low && this.#hashes[at * 2 + 1] === high
  }
}

/** The slot of one key; valid only while the table is locked and nothing else was changed. */
export interface TableSlot {
  value: number | undefined
  /** The table has no such key and no capacity for it. */
  isFull: boolean
  set(value: number): void
  remove(): void
  /**
   * Examines at most `probesMax` slots for a key that may be evicted, and removes it.
   * @returns the slot of this key after that; false if no key could be evicted
   */
  evictOne(mayEvict: (value: number) => boolean, probesMax: number): TableSlot | false
}

/** What holders hold at all fronts of a process; the total is the number without a key. */
export class SharedHoldings implements Holdings {
  readonly #table: SharedTable

  constructor(memory: SharedTableMemory) {
    this.#table = new SharedTable(memory)
  }

  get total(): number {
    return this.#table.spare
  }

  change(holder: string, next: (held: number, total: number) => number | undefined): boolean {
    return this.#table.withSlot(holder, (slot) => {
      const held = slot.value ?? 0
      const after = slot.isFull ? undefined : next(held, this.#table.spare)
      if (after === undefined) return false
      this.#table.spare += after - held
      if (after > 0) slot.set(after)
      else slot.remove()
      return true
    })
  }
}
