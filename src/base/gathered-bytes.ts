/** Counts the bytes of one request body that are in memory. */
export interface BodyMemory {
  /**
   * Reserves bytes that the caller is about to store.
   * @returns false when bodies take too much memory: the upload was ended with 503 overloaded and nothing may
   * be stored
   */
  reserve(bytes: number): boolean
  release(bytes: number): void
}

const FIRST_BYTES = 1_024

/** Joins parts of any size into one buffer, which takes at most twice as much memory as the bytes. */
export class GatheredBytes {
  readonly #memory: BodyMemory | undefined
  readonly #bytesMax: number
  #buffer: Buffer = Buffer.alloc(0)
  #length = 0

  /** @param about `memory` counts the buffer; `bytesMax` is the most bytes that will be added */
  constructor({ memory, bytesMax = Infinity }: { memory?: BodyMemory | undefined; bytesMax?: number } = {}) {
    this.#memory = memory
    this.#bytesMax = bytesMax
  }

  get length(): number {
    return this.#length
  }

  /** Bytes of the buffer, as `memory` counts them. */
  get capacity(): number {
    return this.#buffer.length
  }

  /** All bytes; the view is valid until more are added. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Adds a copy of the bytes. Adds nothing when `memory` refuses them. */
  add(part: Uint8Array): void {
    const length = this.#length + part.length
    const { length: capacity } = this.#buffer
    if (length > capacity) {
      const newCapacity = Math.max(length, Math.min(2 * capacity, this.#bytesMax), FIRST_BYTES)
      if (this.#memory?.reserve(newCapacity - capacity) === false) return
      const larger = Buffer.allocUnsafeSlow(newCapacity)
      this.#buffer.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    this.#buffer.set(part, this.#length)
    this.#length = length
  }

  /** As `add`, for bytes that nothing else uses: those that have their memory alone are kept if they are first. */
  addOwn(part: Buffer): void {
    if (this.#buffer.length > 0 || part.length < part.buffer.byteLength) this.add(part)
    else if (this.#memory?.reserve(part.length) !== false) {
      this.#buffer = part
      this.#length = part.length
    }
  }

  /** Removes and returns all bytes, which are no longer counted. */
  take(): Buffer {
    const { bytes } = this
    this.#memory?.release(this.#buffer.length)
    this.#buffer = Buffer.alloc(0)
    this.#length = 0
    return bytes
  }
}
