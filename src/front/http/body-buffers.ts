import { limits } from '../../base/limits/limits.js'

/** A body whose connection is paused and resumed. */
export interface PausableBody {
  pauseConnection(): void
  resumeConnection(): void
}

interface Owned {
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
  readonly #owners = new Map<string, Owned>()

  /** Whether all bodies may buffer so many bytes more. */
  hasSpace(bytes: number): boolean {
    return this.#bytes + bytes <= limits.bufferedBytesMax
  }

  /**
   * Counts bytes that were added to a buffer of an owner, or removed from it if negative. While there are too
   * many, only what is buffered already is read.
   */
  count(owner: string, bytes: number): void {
    if (bytes === 0) return
    this.#bytes += bytes
    const owned = this.#ownedBy(owner)
    owned.bytes += bytes
    const { receiving, waiting } = owned
    const isFull = owned.bytes >= limits.bufferedOwnerBytes
    const [from, to] = isFull ? [receiving, waiting] : [waiting, receiving]
    for (const body of from) {
      from.delete(body)
      to.add(body)
      if (isFull) body.pauseConnection()
      else body.resumeConnection()
    }
    this.#forgetUnused(owner, owned)
  }

  /** Resumes a connection, now or when fewer bytes of the owner are buffered. */
  resume(owner: string, body: PausableBody): void {
    const { bytes, receiving, waiting } = this.#ownedBy(owner)
    if (bytes >= limits.bufferedOwnerBytes) {
      waiting.add(body)
      return
    }
    receiving.add(body)
    body.resumeConnection()
  }

  /** A body wants no more for now, or has ended. */
  forget(owner: string, body: PausableBody): void {
    const owned = this.#owners.get(owner)
    if (owned === undefined) return
    owned.receiving.delete(body)
    owned.waiting.delete(body)
    this.#forgetUnused(owner, owned)
  }

  #ownedBy(owner: string): Owned {
    let owned = this.#owners.get(owner)
    if (owned === undefined) {
      owned = { bytes: 0, receiving: new Set(), waiting: new Set() }
      this.#owners.set(owner, owned)
    }
    return owned
  }

  #forgetUnused(owner: string, { bytes, receiving, waiting }: Owned): void {
    if (bytes === 0 && receiving.size === 0 && waiting.size === 0) this.#owners.delete(owner)
  }
}
