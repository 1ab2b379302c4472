import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Upload } from '../limits/uploads.js'

/** Receives the joined chunks of a body. */
export interface ChunkReader {
  /** Receives a part, valid only during the call; the last one can be empty. */
  deliver(part: ArrayBuffer, last: boolean): void
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
  #held: ArrayBuffer[] = []
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
  add(part: ArrayBuffer, last: boolean): boolean {
    if (this.#chunksThisTurn === 0) setImmediate(() => this.#onTurnEnd())
    this.#chunksThisTurn++
    this.#bytesThisTurn += part.byteLength
    if (this.#bytes + part.byteLength > limits.chunksGatheredBytes) this.#flush()
    if (part.byteLength > limits.chunksGatheredBytes) this.#hold(part.slice(0))
    else {
      this.#gathered ??= new Uint8Array(limits.chunksGatheredBytes)
      this.#gathered.set(new Uint8Array(part), this.#bytes)
      this.#bytes += part.byteLength
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
    const part = this.#gathered?.slice(0, this.#bytes).buffer ?? new ArrayBuffer(0)
    this.#bytes = 0
    this.#hold(part)
  }

  #hold(part: ArrayBuffer): void {
    this.#held.push(part)
    this.#heldBytes += part.byteLength
    const end = Buffer.from(part, Math.max(0, part.byteLength - BODY_END_BYTES))
    this.#tail = `${this.#tail}${end.toString('latin1')}`.slice(-BODY_END_BYTES)
    if (this.#heldBytes > limits.chunksHeldBytes) this.#deliver(false)
  }

  #deliver(last: boolean): void {
    const held = this.#held.splice(0)
    this.#heldBytes = 0
    if (last) held.push(new ArrayBuffer(0))
    for (const [index, part] of held.entries()) this.#reader.deliver(part, last && index === held.length - 1)
  }
}

/** Receives a part of a body, valid only during the call. */
export type ReceivePart = (part: ArrayBuffer, last: boolean) => void

/** Buffers the parts of a body that arrive before its reader is known. */
export class BufferedBody {
  readonly #memoryOf: () => Upload
  #memory: Upload | undefined
  #parts: { part: ArrayBuffer; last: boolean }[] = []
  #receive: ReceivePart | undefined

  /** @param memoryOf creates the counter of buffered bytes */
  constructor(memoryOf: () => Upload) {
    this.#memoryOf = memoryOf
  }

  /** Whether the parts were delivered or dropped. */
  get isTaken(): boolean {
    return this.#receive !== undefined
  }

  add(part: ArrayBuffer, last: boolean): void {
    if (this.#receive !== undefined) {
      this.#receive(part, last)
      return
    }
    this.#memory ??= this.#memoryOf()
    if (this.#memory.add(part.byteLength)) this.#parts.push({ part: part.slice(0), last })
  }

  /** Calls `begin`, then `receive` with the buffered parts and with every later part. */
  take(receive: ReceivePart, begin: () => void): void {
    this.#receive = receive
    this.#memory?.finish()
    begin()
    for (const { part, last } of this.#parts.splice(0)) receive(part, last)
  }

  /** Drops buffered and later parts. */
  drop(): void {
    this.#receive = ignorePart
    this.#parts = []
    this.#memory?.finish()
  }
}

const ignorePart: ReceivePart = () => {}
