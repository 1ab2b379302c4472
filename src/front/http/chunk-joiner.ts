import { asBuffer } from '../../base/bytes.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'

export interface ChunkReader {
  /** Receives a part, valid only during the call; the last one can be empty. */
  deliver(part: Uint8Array, last: boolean): void
  /** Refuses the body; nothing that arrived in this turn is delivered. */
  refuse(refusal: Refusal): void
}

/** How a chunked body ends: its last chunk, perhaps with an extension, and no trailers. */
const bodyEnd = /\r\n0(?:;[^\r\n]*)?\r\n\r\n$/

/** Number of last bytes in which the end of the body is searched. */
const BODY_END_BYTES = 64

const extended = refuse('malformed_request', 'Expected chunks without extensions')

/**
 * Joins the chunks of a chunked body, so that a body sent byte by byte costs its reader no more than any
 * other: reading a part costs far more than sending a chunk of one byte.
 *
 * Chunks are delivered after everything that arrived with them was parsed. uWebSockets.js takes trailers for
 * the next request and ends the connection with 505; until then the reader, which may write what it receives,
 * has not seen the end of the body. The library also reads extensions of a chunk size as digits of the size,
 * and so the end of the body as part of it. That shows in the last bytes received.
 */
export class ChunkJoiner {
  readonly #reader: ChunkReader
  #gathered: Uint8Array | undefined
  #bytes = 0
  /** Parts to deliver at the end of the turn, and their total bytes. */
  #held: Uint8Array[] = []
  #heldBytes = 0
  #isWhole = false
  /** The last received bytes, as Latin-1. */
  #tail = ''
  /** Number of chunks that arrived in this turn of the event loop, and their bytes. */
  #chunksThisTurn = 0
  #bytesThisTurn = 0

  constructor(reader: ChunkReader) {
    this.#reader = reader
  }

  /**
   * Adds a chunk; the last one of a body is empty.
   * @returns false if there are too many small chunks: the connection must be closed, otherwise
   * uWebSockets.js parses all that the kernel has received, some megabytes, before it serves any other
   * connection
   */
  add(part: Uint8Array, last: boolean): boolean {
    if (this.#chunksThisTurn === 0) setImmediate(() => this.#onTurnEnd())
    this.#chunksThisTurn++
    this.#bytesThisTurn += part.length
    if (this.#bytes + part.length > limits.chunksGatheredBytes) this.#flush()
    if (part.length > limits.chunksHeldBytes) this.#pass(part)
    else if (part.length > limits.chunksGatheredBytes) this.#hold(part.slice())
    else {
      this.#gathered ??= new Uint8Array(limits.chunksGatheredBytes)
      this.#gathered.set(part, this.#bytes)
      this.#bytes += part.length
    }
    this.#isWhole = last
    const { smallChunksPerTurnMax, smallChunkBytes } = limits
    return (
      this.#chunksThisTurn <= smallChunksPerTurnMax ||
      this.#bytesThisTurn >= this.#chunksThisTurn * smallChunkBytes
    )
  }

  #onTurnEnd(): void {
    this.#chunksThisTurn = 0
    this.#bytesThisTurn = 0
    this.#flush()
    // Frees the memory while a slow client sends nothing.
    this.#gathered = undefined
    if (!this.#isWhole && bodyEnd.test(this.#tail)) this.#reader.refuse(extended)
    else this.#deliver(this.#isWhole)
  }

  /** Queues the joined chunks for delivery. */
  #flush(): void {
    if (this.#bytes === 0) return
    const part = this.#gathered?.slice(0, this.#bytes) ?? noBytes
    this.#bytes = 0
    this.#hold(part)
  }

  /** Delivers a part that is too large to be held, and therefore need not be copied. */
  #pass(part: Uint8Array): void {
    this.#see(part)
    this.#deliver(false)
    this.#reader.deliver(part, false)
  }

  #see(part: Uint8Array): void {
    const end = asBuffer(part.subarray(-BODY_END_BYTES))
    this.#tail = `${this.#tail}${end.toString('latin1')}`.slice(-BODY_END_BYTES)
  }

  #hold(part: Uint8Array): void {
    this.#held.push(part)
    this.#heldBytes += part.length
    this.#see(part)
    if (this.#heldBytes > limits.chunksHeldBytes) this.#deliver(false)
  }

  #deliver(last: boolean): void {
    const held = this.#held.splice(0)
    this.#heldBytes = 0
    if (last) held.push(noBytes)
    for (const [index, part] of held.entries()) this.#reader.deliver(part, last && index === held.length - 1)
  }
}

const noBytes = new Uint8Array(0)
