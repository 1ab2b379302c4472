import { limits } from '../base/limits.js'
import { Shares } from './streams/shares.js'

/**
 * Bytes of answers that no socket has taken yet. They take the server's memory for as long as readers like, so they are
 * bounded: in all, and for each principal.
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

  /** Takes room for bytes of a principal; false, and nothing is taken, if there is not enough. */
  take(principalId: string, bytes: number): boolean {
    if (this.#bytes + bytes > this.#max || !this.#shares.take(principalId, bytes)) return false
    this.#bytes += bytes
    return true
  }

  /** Counts bytes that already wait, and may exceed the bounds: `hasRoom` is checked before the next ones are sent. */
  add(principalId: string, bytes: number): void {
    this.#shares.add(principalId, bytes)
    this.#bytes += bytes
  }

  give(principalId: string, bytes: number): void {
    this.#shares.give(principalId, bytes)
    this.#bytes -= bytes
  }

  /** Whether there is room, both in the principal's share and in all. */
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
