import { limits } from '../../base/limits/limits.js'

/** A body whose connection is paused and resumed. */
export interface PausableBody {
  pauseConnection(): void
  resumeConnection(): void
}

interface Holding {
  /** Bytes in their buffers. */
  bytes: number
  /** Bodies that want more, and whose connections are resumed. */
  receiving: Set<PausableBody>
  /** Bodies that want more, and whose connections stay paused while too many bytes are buffered. */
  waiting: Set<PausableBody>
}

/**
 * Counts what all bodies of a front buffer: what arrives although a connection is paused, which is what is left
 * of one read (512 KiB with uWebSockets.js), and what arrived before the reader was known.
 */
export class BodyBuffers {
  #bytes = 0
  readonly #holders = new Map<string, Holding>()

  /** Whether all bodies may buffer so many bytes more. */
  hasSpace(bytes: number): boolean {
    return this.#bytes + bytes <= limits.bufferedBytesMax
  }

  /**
   * Counts bytes that were added to a buffer of a holder, or removed from it if negative. While there are too
   * many, only what is buffered already is read.
   */
  count(holder: string, bytes: number): void {
    if (bytes === 0) return
    this.#bytes += bytes
    const holding = this.#holdingOf(holder)
    holding.bytes += bytes
    const { receiving, waiting } = holding
    const isFull = holding.bytes >= limits.bufferedHolderBytes
    const [from, to] = isFull ? [receiving, waiting] : [waiting, receiving]
    for (const body of from) {
      from.delete(body)
      to.add(body)
      if (isFull) body.pauseConnection()
      else body.resumeConnection()
    }
    this.#forgetUnused(holder, holding)
  }

  /** Resumes a connection, now or when fewer bytes of the holder are buffered. */
  resume(holder: string, body: PausableBody): void {
    const { bytes, receiving, waiting } = this.#holdingOf(holder)
    if (bytes >= limits.bufferedHolderBytes) {
      waiting.add(body)
      return
    }
    receiving.add(body)
    body.resumeConnection()
  }

  /** A body wants no more for now, or has ended. */
  forget(holder: string, body: PausableBody): void {
    const holding = this.#holders.get(holder)
    if (holding === undefined) return
    holding.receiving.delete(body)
    holding.waiting.delete(body)
    this.#forgetUnused(holder, holding)
  }

  #holdingOf(holder: string): Holding {
    let holding = this.#holders.get(holder)
    if (holding === undefined) {
      holding = { bytes: 0, receiving: new Set(), waiting: new Set() }
      this.#holders.set(holder, holding)
    }
    return holding
  }

  #forgetUnused(holder: string, { bytes, receiving, waiting }: Holding): void {
    if (bytes === 0 && receiving.size === 0 && waiting.size === 0) this.#holders.delete(holder)
  }
}
