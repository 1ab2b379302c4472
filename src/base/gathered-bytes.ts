/** Counts the bytes of one body that are in memory. */
export interface BodyMemory {
  /**
   * Counts bytes that are kept from now on. Where bodies take too much memory, the upload is ended instead, with 503
   * overloaded.
   * @returns false then: nothing more is to be kept
   */
  add(bytes: number): boolean
  give(bytes: number): void
}

const FIRST_BYTES = 1_024

/**
 * Bytes that come in parts and are needed in one piece: however small the parts are, they take no more memory than
 * twice their bytes.
 */
export class GatheredBytes {
  readonly #memory: BodyMemory | undefined
  readonly #bytesMax: number
  #buffer = Buffer.alloc(0)
  #length = 0

  /** @param about `memory` counts what they take; `bytesMax`: there will be no more of them */
  constructor({ memory, bytesMax = Infinity }: { memory?: BodyMemory | undefined; bytesMax?: number } = {}) {
    this.#memory = memory
    this.#bytesMax = bytesMax
  }

  get length(): number {
    return this.#length
  }

  /** All of them, until more are added. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Adds a copy of the bytes; nothing once there is no memory for the body, which has ended then. */
  add(part: Uint8Array): void {
    const length = this.#length + part.length
    const { length: had } = this.#buffer
    if (length > had) {
      const has = Math.max(length, Math.min(2 * had, this.#bytesMax), FIRST_BYTES)
      if (this.#memory?.add(has - had) === false) return
      const larger = Buffer.allocUnsafeSlow(has)
      this.#buffer.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    this.#buffer.set(part, this.#length)
    this.#length = length
  }

  /** Returns all of them, which are not counted any more, and starts again empty. */
  take(): Buffer {
    const { bytes } = this
    this.#memory?.give(this.#buffer.length)
    this.#buffer = Buffer.alloc(0)
    this.#length = 0
    return bytes
  }
}
