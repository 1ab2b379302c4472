/** The most bytes of UTF-8 for one unit of a JavaScript string. */
const UNIT_BYTES_MAX = 3

/** Collects text as UTF-8 in one buffer, which grows as needed. */
export class TextBuffer {
  #memory: Buffer
  #length = 0

  /** @param bytes for which there is space at first */
  constructor(bytes: number) {
    this.#memory = Buffer.allocUnsafe(bytes)
  }

  /** Bytes of the text so far. */
  get length(): number {
    return this.#length
  }

  /** The text so far, as a view that the next addition may leave behind. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#length)
  }

  addAscii(text: string): void {
    this.#reserve(text.length)
    this.#length += this.#memory.write(text, this.#length, 'latin1')
  }

  addText(text: string): void {
    this.#reserve(UNIT_BYTES_MAX * text.length)
    this.#length += this.#memory.write(text, this.#length)
  }

  /** Adds text that is encoded already. */
  addBytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#memory.set(bytes, this.#length)
    this.#length += bytes.length
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#memory.length) return
    const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#memory.length))
    grown.set(this.bytes)
    this.#memory = grown
  }
}
