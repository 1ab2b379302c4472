const FIRST_BYTES = 1_024

/**
 * Bytes that come in parts and are needed in one piece: however small the parts are, they take no more memory than
 * their bytes.
 */
export class GatheredBytes {
  #buffer = Buffer.alloc(0)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Adds a copy of the bytes. */
  add(part: Uint8Array): void {
    const length = this.#length + part.length
    if (length > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#buffer.length, FIRST_BYTES))
      this.#buffer.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    this.#buffer.set(part, this.#length)
    this.#length = length
  }

  /** Returns all of them and starts again empty. */
  take(): Buffer {
    const all = this.#buffer.subarray(0, this.#length)
    this.#buffer = Buffer.alloc(0)
    this.#length = 0
    return all
  }
}
