import { refuse } from '../../base/errors.js'
import type { Count, ShareCounts } from './shares.js'

/**
 * Bytes that take the server's memory for as long as clients like, bounded in all and for each principal: answers that no
 * socket has taken yet, and bodies of requests that are arriving.
 */
export class BoundedBytes {
  readonly #max: number
  readonly #shares: ShareCounts
  readonly #total: Count

  /** @param bounds bytes in all, and what counts them: in all, and of each principal */
  constructor(bounds: { max: number; total: Count; shares: ShareCounts }) {
    this.#max = bounds.max
    this.#total = bounds.total
    this.#shares = bounds.shares
  }

  /** Takes room for bytes of a principal; false, and nothing is taken, if there is not enough. */
  take(principalId: string, bytes: number): boolean {
    if (this.#total.value + bytes > this.#max || !this.#shares.take(principalId, bytes)) return false
    this.#total.add(bytes)
    return true
  }

  /** Counts bytes that already wait, and may exceed the bounds: `hasRoom` is checked before the next ones are sent. */
  add(principalId: string, bytes: number): void {
    this.#shares.add(principalId, bytes)
    this.#total.add(bytes)
  }

  give(principalId: string, bytes: number): void {
    this.#shares.give(principalId, bytes)
    this.#total.add(-bytes)
  }

  /** Whether there is room, both in the principal's share and in all. */
  hasRoom(principalId: string): boolean {
    return this.#total.value < this.#max && this.#shares.has(principalId)
  }
}

/** 503 while too many bytes wait to be read by clients. */
export const noRoom = refuse(
  'overloaded',
  'Too many answers wait for their readers: read them, then try again',
  { retryAfterSecs: 1 },
)
