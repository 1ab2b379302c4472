import { LINE_FEED } from '../base/ascii.js'
import { GatheredBytes } from './gathered-bytes.js'
import type { BodyMemory } from './uploads.js'

/** Whole lines and the number of the first of them. */
export interface LineChunk {
  bytes: Buffer
  firstLine: number
}

/**
 * Cuts a byte stream into chunks of whole lines. Chunks depend on the bytes alone, not on how they arrive, so that
 * the same upload sent again under one Idempotency-Key is cut in the same places.
 */
export class LineSplitter {
  readonly #chunk: { bytes: number; lines: number }
  readonly #waiting: GatheredBytes
  /** Line feeds among the bytes that wait. */
  #lines = 0
  #nextLine = 1

  /**
   * A chunk ends with the line with which it has as many bytes or lines as `chunk` says.
   * @param memory counts the bytes that wait for the end of their chunk
   */
  constructor(chunk: { bytes: number; lines: number }, memory?: BodyMemory) {
    this.#chunk = chunk
    this.#waiting = new GatheredBytes({ memory })
  }

  /** Bytes that wait for the end of their chunk. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Takes bytes; returns the chunks that they complete. */
  push(bytes: Uint8Array): LineChunk[] {
    const chunks: LineChunk[] = []
    let from = 0
    for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = nextLineFeed(bytes, at + 1)) {
      this.#lines++
      const chunkBytes = this.#waiting.length + at + 1 - from
      if (chunkBytes < this.#chunk.bytes && this.#lines < this.#chunk.lines) continue
      this.#waiting.add(bytes.subarray(from, at + 1))
      chunks.push(this.#take(this.#waiting.take(), this.#lines))
      from = at + 1
    }
    if (from < bytes.length) this.#waiting.add(bytes.subarray(from))
    return chunks
  }

  /** Returns the whole lines that wait, though their chunk is not full; what follows the last line feed stays. */
  flushLines(): LineChunk | undefined {
    if (this.#lines === 0) return undefined
    const all = this.#waiting.take()
    const end = all.lastIndexOf(LINE_FEED) + 1
    if (end < all.length) this.#waiting.add(all.subarray(end))
    return this.#take(all.subarray(0, end), this.#lines)
  }

  /** The rest at the end of the stream; its last line need not end in a line feed. */
  end(): LineChunk | undefined {
    return this.#waiting.length === 0 ? undefined : this.#take(this.#waiting.take(), this.#lines)
  }

  #take(bytes: Buffer, lines: number): LineChunk {
    const chunk = { bytes, firstLine: this.#nextLine }
    this.#nextLine += lines
    this.#lines = 0
    return chunk
  }
}

/** The next line feed from `at` on, or -1; within a run of line feeds no search is needed. */
export function nextLineFeed(bytes: Uint8Array, at: number): number {
  return bytes[at] === LINE_FEED ? at : bytes.indexOf(LINE_FEED, at)
}
