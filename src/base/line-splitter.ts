import { LINE_FEED } from './ascii.js'
import { asBuffer } from './bytes.js'
import { type BodyMemory, GatheredBytes } from './gathered-bytes.js'

/** Whole lines, and the number of the first one. */
export interface LineChunk {
  bytes: Buffer
  firstLine: number
  /**
   * The chunk is one line that is too long, without its line feed. `bytes` is empty when it exceeds
   * `keptBytesMax`.
   */
  isLong?: true
}

interface Cutting {
  /** Bytes and lines with which a chunk is full. */
  bytes: number
  lines: number
  /** A longer line is a separate chunk with `isLong`. */
  lineBytesMax?: number
  /** A line longer than this is dropped while it arrives. */
  keptBytesMax?: number
}

/**
 * Cuts a byte stream into chunks of whole lines. The chunks depend only on the bytes, not on how they arrive,
 * so that a repeated upload with the same Idempotency-Key is cut in the same places.
 */
export class LineSplitter {
  readonly #cutting: Required<Cutting>
  readonly #waiting: GatheredBytes
  /** Line feeds in `#waiting`. */
  #lines = 0
  #nextLine = 1
  /** Bytes of the current, unfinished line. */
  #begun = 0
  /** Whether the bytes of the current line were dropped. */
  #dropped = false

  /** @param memory counts the bytes that wait for the end of their chunk */
  constructor({ lineBytesMax = Infinity, keptBytesMax = 0, ...cutting }: Cutting, memory?: BodyMemory) {
    this.#cutting = { ...cutting, lineBytesMax, keptBytesMax }
    this.#waiting = new GatheredBytes({ memory })
  }

  /** Bytes that wait for the end of their chunk. */
  get bufferedBytes(): number {
    return this.#waiting.length
  }

  /** Bytes of the current, unfinished line, including dropped ones. */
  get unfinishedBytes(): number {
    return this.#begun
  }

  /** The number of the first line that was not returned yet. */
  get nextLine(): number {
    return this.#nextLine
  }

  /** Adds bytes and returns the chunks that they complete, which may be views of them. */
  push(bytes: Uint8Array): LineChunk[] {
    const { bytes: bytesFull, lines: linesFull, lineBytesMax } = this.#cutting
    const chunks: LineChunk[] = []
    let from = 0
    // Start of the current line; negative if it began in earlier bytes.
    let start = -this.#begun
    for (let at = lineEnd(bytes, 0); at < bytes.length; at = lineEnd(bytes, at + 1)) {
      if (at - start > lineBytesMax) {
        chunks.push(...this.#passLong(bytes.subarray(from, at), start - from), this.#takeLong())
        from = at + 1
      } else {
        this.#lines++
        const isFull = this.#waiting.length + at + 1 - from >= bytesFull || this.#lines >= linesFull
        if (isFull) {
          chunks.push(this.#take(this.#joined(bytes.subarray(from, at + 1)), this.#lines))
          from = at + 1
        }
      }
      start = at + 1
    }
    this.#begun = bytes.length - start
    if (this.#begun > lineBytesMax) chunks.push(...this.#passLong(bytes.subarray(from), start - from))
    else if (from < bytes.length) this.#waiting.add(bytes.subarray(from))
    return chunks
  }

  /** Returns the waiting lines before their chunk is full; bytes after the last line feed stay. */
  flushLines(): LineChunk | undefined {
    if (this.#lines === 0) return undefined
    const all = this.#waiting.take()
    const end = all.lastIndexOf(LINE_FEED) + 1
    if (end < all.length) this.#waiting.add(all.subarray(end))
    return this.#take(all.subarray(0, end), this.#lines)
  }

  /** Returns the rest at the end of the stream; the last line may lack its line feed. */
  end(): LineChunk | undefined {
    if (this.#begun > this.#cutting.lineBytesMax) return this.#takeLong()
    return this.#waiting.length === 0 ? undefined : this.#take(this.#waiting.take(), this.#lines)
  }

  /**
   * Adds bytes of a line that is too long.
   * @param start where the line begins in `bytes`; negative if it began in earlier bytes
   * @returns the whole lines before it
   */
  #passLong(bytes: Uint8Array, start: number): LineChunk[] {
    const lineStart = Math.max(0, start)
    if (lineStart > 0) this.#waiting.add(bytes.subarray(0, lineStart))
    const before = this.flushLines()
    if (!this.#dropped) this.#waiting.add(bytes.subarray(lineStart))
    if (this.#waiting.length > this.#cutting.keptBytesMax) {
      this.#dropped = true
      this.#waiting.take()
    }
    return before === undefined ? [] : [before]
  }

  /** Takes the waiting bytes and those after them, which are not copied if none wait. */
  #joined(bytes: Uint8Array): Buffer {
    if (this.#waiting.length === 0) return asBuffer(bytes)
    this.#waiting.add(bytes)
    return this.#waiting.take()
  }

  #takeLong(): LineChunk {
    this.#dropped = false
    return { ...this.#take(this.#waiting.take(), 1), isLong: true }
  }

  #take(bytes: Buffer, lines: number): LineChunk {
    const chunk = { bytes, firstLine: this.#nextLine }
    this.#nextLine += lines
    this.#lines = 0
    return chunk
  }
}

/** The index of the line feed at or after `from`, or the length of the bytes. */
export function lineEnd(bytes: Uint8Array, from: number): number {
  // A run of line feeds needs no search.
  if (bytes[from] === LINE_FEED) return from
  const found = bytes.indexOf(LINE_FEED, from)
  return found === -1 ? bytes.length : found
}
