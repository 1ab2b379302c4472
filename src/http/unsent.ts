import { limits } from '../base/limits.js'
import { Shares } from './streams/shares.js'

/**
 * Bytes that were made for readers and that no socket has taken yet. They are the server's memory and readers decide how
 * long it is taken, so they are bounded: in all, and for each principal.
 */
export class UnsentBytes {
  readonly #max: number
  readonly #shares: Shares
  #bytes = 0

  /** @param bounds bytes in all, and of one principal */
  constructor(bounds: { max: number; perPrincipalMax: number }) {
    this.#max = bounds.max
    this.#shares = new Shares(bounds.perPrincipalMax)
  }

  /** Takes room for bytes of a principal; false, and nothing is taken, where there is none. */
  take(principalId: string, bytes: number): boolean {
    if (this.#bytes + bytes > this.#max || !this.#shares.take(principalId, bytes)) return false
    this.#bytes += bytes
    return true
  }

  /** Counts bytes that wait already, and may go over the bounds: what is sent next looks at `hasRoom`. */
  add(principalId: string, bytes: number): void {
    this.#shares.add(principalId, bytes)
    this.#bytes += bytes
  }

  give(principalId: string, bytes: number): void {
    this.#shares.give(principalId, bytes)
    this.#bytes -= bytes
  }

  /** Whether the principal has bytes left, and all together have. */
  hasRoom(principalId: string): boolean {
    return this.#bytes < this.#max && this.#shares.has(principalId)
  }
}

/** For answers and exports. */
export function unsentAnswers(): UnsentBytes {
  return new UnsentBytes({ max: limits.unsentBytesMax, perPrincipalMax: limits.unsentBytesPerPrincipalMax })
}

/** For streams. */
export function unsentEvents(): UnsentBytes {
  return new UnsentBytes({
    max: limits.unsentBytesMax,
    perPrincipalMax: limits.streamUnsentBytesPerPrincipalMax,
  })
}
