import { LINE_FEED } from './ascii.js'
import { type BodyMemory, GatheredBytes } from './gathered-bytes.js'

/** Whole lines and the number of the first of them. */
export interface LineChunk {
  bytes: Buffer
  firstLine: number
  /** It is one line that is too long, without its line feed; `bytes` is empty where it is not kept either. */
  isLong?: true
}

/** Where chunks end, and how long a line may be. */
interface Cutting {
  /** Bytes and lines with which a chunk is full. */
  bytes: number
  lines: number
  /** A longer line is a chunk of its own. */
  lineBytesMax?: number
  /** A still longer one is dropped while it arrives. */
  keptBytesMax?: number
}

/**
 * Cuts a byte stream into chunks of whole lines. Chunks depend on the bytes alone, not on how they arrive, so that
 * the same upload sent again under one Idempotency-Key is cut in the same places.
 */
export class LineSplitter {
  readonly #cutting: Required<Cutting>
  readonly #waiting: GatheredBytes
  /** Line feeds among the bytes that wait. */
  #lines = 0
  #nextLine = 1
  /** Bytes of the line that has begun. */
  #begun = 0
  /** Whether they were dropped. */
  #dropped = false

  /**
   * A chunk ends with the line with which it has as many bytes or lines as `cutting` says.
   * @param memory counts the bytes that wait for the end of their chunk
   */
  constructor({ lineBytesMax = Infinity, keptBytesMax = 0, ...cutting }: Cutting, memory?: BodyMemory) {
    this.#cutting = { ...cutting, lineBytesMax, keptBytesMax }
    this.#waiting = new GatheredBytes({ memory })
  }

  /** Bytes that wait for the end of their chunk. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Bytes of the line that has begun, dropped ones included. */
  get begun(): number {
    return this.#begun
  }

  /** The number of the first line that waits or has begun. */
  get nextLine(): number {
    return this.#nextLine
  }

  /** Takes bytes; returns the chunks that they complete. */
  push(bytes: Uint8Array): LineChunk[] {
    const { bytes: bytesFull, lines: linesFull, lineBytesMax } = this.#cutting
    const chunks: LineChunk[] = []
    let from = 0
    // Where the line begins; negative if it began in earlier bytes.
    let start = -this.#begun
    for (let at = lineEnd(bytes, 0); at < bytes.length; at = lineEnd(bytes, at + 1)) {
      if (at - start > lineBytesMax) {
        chunks.push(...this.#passLong(bytes.subarray(from, at), start - from), this.#takeLong())
        from = at + 1
      } else {
        this.#lines++
        const isFull = this.#waiting.length + at + 1 - from >= bytesFull || this.#lines >= linesFull
        if (isFull) {
          this.#waiting.add(bytes.subarray(from, at + 1))
          chunks.push(this.#take(this.#waiting.take(), this.#lines))
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
    if (this.#begun > this.#cutting.lineBytesMax) return this.#takeLong()
    return this.#waiting.length === 0 ? undefined : this.#take(this.#waiting.take(), this.#lines)
  }

  /**
   * Takes bytes of a line that is too long.
   * @param start where the line begins in them; negative if it began in earlier bytes
   * @returns the whole lines before it
   */
  #passLong(bytes: Uint8Array, start: number): LineChunk[] {
    const own = Math.max(0, start)
    if (own > 0) this.#waiting.add(bytes.subarray(0, own))
    const before = this.flushLines()
    if (!this.#dropped) this.#waiting.add(bytes.subarray(own))
    if (this.#waiting.length > this.#cutting.keptBytesMax) {
      this.#dropped = true
      this.#waiting.take()
    }
    return before === undefined ? [] : [before]
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

/** Where the line ends that begins at `from`: at its line feed, or with the bytes. */
export function lineEnd(bytes: Uint8Array, from: number): number {
  // Within a run of line feeds no search is needed.
  if (bytes[from] === LINE_FEED) return from
  const found = bytes.indexOf(LINE_FEED, from)
  return found === -1 ? bytes.length : found
}
