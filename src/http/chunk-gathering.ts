import { limits } from '../base/limits.js'

/**
 * Puts the chunks of a chunked body together, so that a body that is sent byte by byte costs its reader no more than
 * another: what a reader does with a part costs far more than sending a chunk of one byte.
 */
export class ChunkGathering {
  readonly #deliver: (part: ArrayBuffer, last: boolean) => void
  #gathered: Uint8Array | undefined
  #bytes = 0
  /** Chunks in this turn of the event loop, and their bytes. */
  #together = 0
  #togetherBytes = 0

  /**
   * @param deliver takes parts of some size, or what came in one turn of the event loop; a part is valid only during
   * the call
   */
  constructor(deliver: (part: ArrayBuffer, last: boolean) => void) {
    this.#deliver = deliver
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
    if (this.#bytes + part.byteLength > limits.chunksGatheredBytes) this.#flush(false)
    if (part.byteLength > limits.chunksGatheredBytes) this.#deliver(part, false)
    else {
      this.#gathered ??= new Uint8Array(limits.chunksGatheredBytes)
      this.#gathered.set(new Uint8Array(part), this.#bytes)
      this.#bytes += part.byteLength
    }
    if (last) this.#flush(true)
    const { smallChunksTogetherMax, smallChunkBytes } = limits
    return this.#together <= smallChunksTogetherMax || this.#togetherBytes >= this.#together * smallChunkBytes
  }

  #turned(): void {
    this.#together = 0
    this.#togetherBytes = 0
    this.#flush(false)
    // Not kept while a slow client sends nothing.
    this.#gathered = undefined
  }

  #flush(last: boolean): void {
    if (this.#bytes === 0 && !last) return
    const part = this.#gathered?.slice(0, this.#bytes).buffer ?? new ArrayBuffer(0)
    this.#bytes = 0
    this.#deliver(part, last)
  }
}
