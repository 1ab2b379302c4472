/** Whole lines and the number of the first of them. */
export interface LineChunk {
  bytes: Buffer
  firstLine: number
}

/** What ends a line. */
export const LINE_FEED = 0x0a

/**
 * Cuts a byte stream into chunks of whole lines. Chunks depend on the bytes alone, not on how they arrive, so that
 * the same upload sent again under one Idempotency-Key is cut in the same places.
 */
export class IngestSplitter {
  readonly #chunk: { bytes: number; lines: number }
  #parts: Buffer[] = []
  #bytes = 0
  #lines = 0
  #nextLine = 1

  /** A chunk ends with the line that brings it to as many bytes or lines as `chunk` says. */
  constructor(chunk: { bytes: number; lines: number }) {
    this.#chunk = chunk
  }

  /** Bytes that wait for the end of their chunk. */
  get waiting(): number {
    return this.#bytes
  }

  /** Takes bytes; gives the chunks that are complete with them. `bytes` is kept. */
  push(bytes: Buffer): LineChunk[] {
    const chunks: LineChunk[] = []
    let from = 0
    for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) {
      this.#lines++
      const chunkBytes = this.#bytes + at + 1 - from
      if (chunkBytes < this.#chunk.bytes && this.#lines < this.#chunk.lines) continue
      this.#parts.push(bytes.subarray(from, at + 1))
      chunks.push(this.#take())
      from = at + 1
    }
    if (from < bytes.length) {
      this.#parts.push(bytes.subarray(from))
      this.#bytes += bytes.length - from
    }
    return chunks
  }

  /** Gives the whole lines that wait, though their chunk is not full; what follows the last line feed waits on. */
  flushLines(): LineChunk | undefined {
    const all = Buffer.concat(this.#parts)
    const end = all.lastIndexOf(LINE_FEED) + 1
    if (end === 0) return undefined
    this.#parts = [all.subarray(0, end)]
    const chunk = this.#take()
    if (end < all.length) {
      this.#parts = [all.subarray(end)]
      this.#bytes = all.length - end
    }
    return chunk
  }

  /** The rest at the end of the stream; its last line need not end in a line feed. */
  end(): LineChunk | undefined {
    return this.#parts.length === 0 ? undefined : this.#take()
  }

  #take(): LineChunk {
    const [only] = this.#parts
    const bytes = this.#parts.length === 1 && only !== undefined ? only : Buffer.concat(this.#parts)
    const chunk = { bytes, firstLine: this.#nextLine }
    this.#nextLine += this.#lines
    this.#parts = []
    this.#bytes = 0
    this.#lines = 0
    return chunk
  }
}
