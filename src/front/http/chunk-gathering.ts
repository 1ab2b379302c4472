import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Upload } from '../limits/uploads.js'

/** What is done with the chunks of a body. */
export interface ChunkReader {
  /** Takes a part of some size, which is valid only during the call; a last one can be empty. */
  deliver(part: ArrayBuffer, last: boolean): void
  /** The body cannot be read: nothing of this turn is delivered. */
  refuse(refusal: Refusal): void
}

/** How a chunked body ends: its last chunk, perhaps with an extension, and no trailers. */
const bodyEnd = /\r\n0(?:;[^\r\n]*)?\r\n\r\n$/

/** Bytes in which that is looked for. */
const BODY_END_BYTES = 64

const extended = refuse('malformed_request', 'Expected chunks without extensions')

/**
 * Puts the chunks of a chunked body together, so that a body that is sent byte by byte costs its reader no more than
 * another: what a reader does with a part costs far more than sending a chunk of one byte.
 *
 * They are delivered once all that arrived with them was parsed. uWebSockets.js takes trailers for a next request, and ends the
 * connection by 505: until then its reader, which may write what it gets, has not seen the end of the body. It reads extensions
 * of a chunk's size as digits of it, and so the end of the body as a part of it: that shows in the last bytes of what has come.
 */
export class ChunkGathering {
  readonly #reader: ChunkReader
  #gathered: Uint8Array | undefined
  #bytes = 0
  /** What is delivered at the end of the turn, and its bytes. */
  #held: ArrayBuffer[] = []
  #heldBytes = 0
  #isWhole = false
  /** The last bytes that came, as Latin-1. */
  #tail = ''
  /** Chunks in this turn of the event loop, and their bytes. */
  #together = 0
  #togetherBytes = 0

  constructor(reader: ChunkReader) {
    this.#reader = reader
  }

  /**
   * Takes a chunk; the last one of a body has no bytes.
   * @returns false when there are too many small ones: unless the connection is closed, uWebSockets.js works through
   * all that the kernel has of it, some megabytes, before anybody else has a turn
   */
  add(part: ArrayBuffer, last: boolean): boolean {
    if (this.#together === 0) setImmediate(() => this.#turned())
    this.#together++
    this.#togetherBytes += part.byteLength
    if (this.#bytes + part.byteLength > limits.chunksGatheredBytes) this.#flush()
    if (part.byteLength > limits.chunksGatheredBytes) this.#hold(part.slice(0))
    else {
      this.#gathered ??= new Uint8Array(limits.chunksGatheredBytes)
      this.#gathered.set(new Uint8Array(part), this.#bytes)
      this.#bytes += part.byteLength
    }
    this.#isWhole = last
    const { smallChunksTogetherMax, smallChunkBytes } = limits
    return this.#together <= smallChunksTogetherMax || this.#togetherBytes >= this.#together * smallChunkBytes
  }

  #turned(): void {
    this.#together = 0
    this.#togetherBytes = 0
    this.#flush()
    // Not kept while a slow client sends nothing.
    this.#gathered = undefined
    if (!this.#isWhole && bodyEnd.test(this.#tail)) this.#reader.refuse(extended)
    else this.#deliver(this.#isWhole)
  }

  /** Holds what was put together. */
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
    for (const [place, part] of held.entries()) this.#reader.deliver(part, last && place === held.length - 1)
  }
}

/** Takes a part of a body, which is valid only during the call. */
export type ReceivePart = (part: ArrayBuffer, last: boolean) => void

/** Parts of a body that came before it was known what to do with them. */
export class HeldBody {
  readonly #memoryOf: () => Upload
  #memory: Upload | undefined
  #parts: { part: ArrayBuffer; last: boolean }[] = []
  #receive: ReceivePart | undefined

  /** @param memoryOf makes what counts the bytes that are kept */
  constructor(memoryOf: () => Upload) {
    this.#memoryOf = memoryOf
  }

  /** Whether the parts were taken, or dropped. */
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

  /** Has `receive` called with the parts that have come, after `begin`, and with those that will come. */
  take(receive: ReceivePart, begin: () => void): void {
    this.#receive = receive
    this.#memory?.release()
    begin()
    for (const { part, last } of this.#parts.splice(0)) receive(part, last)
  }

  /** Drops what has come and will come. */
  drop(): void {
    this.#receive = () => {}
    this.#parts = []
    this.#memory?.release()
  }
}
