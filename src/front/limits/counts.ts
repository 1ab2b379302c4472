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
