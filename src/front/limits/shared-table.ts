import { hash } from 'node:crypto'
import { assert } from '../../base/assert.js'

/** The lock, how many keys there are, and where the last search for one to drop ended. */
const HEAD_WORDS = 4

/** How long a thread sleeps while another has the lock, milliseconds: it is woken when the lock is free. */
const LOCK_WAIT_MS = 5

/** Memory of a table, and the secret by which its keys are hashed, so that nobody can choose keys that collide. */
export interface SharedTableMemory {
  memory: SharedArrayBuffer
  secret: string
  /** How many keys it can have: half of its places. */
  keysMax: number
}

/** Memory for a table of so many keys. Pages of it that are not used yet take nothing. */
export function sharedTableMemory(keysMax: number, secret: string): SharedTableMemory {
  const memory = new SharedArrayBuffer(HEAD_WORDS * 4 + 8 + placesFor(keysMax) * 16)
  return { memory, secret, keysMax }
}

function placesFor(keysMax: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(2, keysMax * 2)))
}

/**
 * A table of numbers by texts in memory that several threads share. A text is known by 64 bits of its keyed hash. A lock
 * keeps threads from changing the table at once; what is done under it takes less than a microsecond.
 */
export class SharedTable {
  readonly keysMax: number
  readonly #secret: string
  readonly #words: Int32Array
  /** Two words of hash for each place; both 0: free. */
  readonly #hashes: Int32Array
  readonly #values: Float64Array
  readonly #places: number

  constructor({ memory, secret, keysMax }: SharedTableMemory) {
    this.keysMax = keysMax
    this.#secret = secret
    this.#places = placesFor(keysMax)
    this.#words = new Int32Array(memory, 0, HEAD_WORDS)
    this.#values = new Float64Array(memory, HEAD_WORDS * 4, this.#places + 1)
    this.#hashes = new Int32Array(memory, HEAD_WORDS * 4 + 8 + this.#places * 8, this.#places * 2)
  }

  /** One more number, without a key; 0 at first. To be used only within `at`. */
  get spare(): number {
    return this.#values[this.#places] ?? 0
  }

  set spare(value: number) {
    this.#values[this.#places] = value
  }

  /** Runs `work` while no other thread changes the table, with the place of the key, or where it would be put. */
  at<Result>(key: string, work: (place: TableSlot) => Result): Result {
    const digest = hash('sha256', this.#secret + key, 'buffer')
    const low = digest.readInt32LE(0)
    const high = digest.readInt32LE(4) | 1
    this.#lock()
    try {
      return work(this.#placeOf(low, high))
    } finally {
      Atomics.store(this.#words, 0, 0)
      Atomics.notify(this.#words, 0, 1)
    }
  }

  /** How many keys it has. */
  get size(): number {
    return Atomics.load(this.#words, 1)
  }

  #lock(): void {
    while (Atomics.compareExchange(this.#words, 0, 0, 1) !== 0) Atomics.wait(this.#words, 0, 1, LOCK_WAIT_MS)
  }

  #placeOf(low: number, high: number): TableSlot {
    let at = (low >>> 0) % this.#places
    while (!this.#isFree(at) && !this.#has(at, low, high)) at = (at + 1) % this.#places
    const isNew = this.#isFree(at)
    return {
      value: isNew ? undefined : this.#values[at],
      isFull: isNew && this.size >= this.keysMax,
      set: (value) => this.#put(at, [low, high], value),
      remove: () => this.#remove(at),
      makeRoom: (mayDrop, looks) => this.#makeRoom(mayDrop, looks) && this.#placeOf(low, high),
    }
  }

  #put(at: number, [low, high]: [number, number], value: number): void {
    if (this.#isFree(at)) {
      assert(this.size < this.keysMax, 'a table has no more keys than it can have')
      this.#hashes[at * 2] = low
      this.#hashes[at * 2 + 1] = high
      this.#words[1] = this.size + 1
    }
    this.#values[at] = value
  }

  /** Looks at a few keys, and drops the first that may be. @returns whether one was dropped */
  #makeRoom(mayDrop: (value: number) => boolean, looks: number): boolean {
    for (let looked = 0; looked < Math.min(looks, this.#places); looked++) {
      const at = (this.#words[2] ?? 0) % this.#places
      this.#words[2] = (at + 1) % this.#places
      if (this.#isFree(at) || !mayDrop(this.#values[at] ?? 0)) continue
      this.#remove(at)
      return true
    }
    return false
  }

  /** Frees a place and moves up those behind it that would no longer be found. */
  #remove(from: number): void {
    if (this.#isFree(from)) return
    this.#words[1] = this.size - 1
    let free = from
    for (let at = (from + 1) % this.#places; !this.#isFree(at); at = (at + 1) % this.#places) {
      const wanted = ((this.#hashes[at * 2] ?? 0) >>> 0) % this.#places
      const apart = (at - wanted + this.#places) % this.#places
      if (apart < (at - free + this.#places) % this.#places) continue
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

/** The place of one key, valid only while the table is locked and nothing else was changed. */
export interface TableSlot {
  /** Undefined where the table has no such key. */
  value: number | undefined
  /** It has no such key, and no room for it. */
  isFull: boolean
  set(value: number): void
  remove(): void
  /**
   * Looks at so many places for a key that may be dropped, and drops it.
   * @returns the place anew; false where none was found
   */
  makeRoom(mayDrop: (value: number) => boolean, looks: number): TableSlot | false
}
