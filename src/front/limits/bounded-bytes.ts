import { refuse } from '../../base/errors.js'
import type { Count, QuotaCounts } from './quotas.js'

/**
 * Counts bytes that stay in memory as long as clients are slow, such as unread answers and arriving request
 * bodies. Limits the total and each principal's part.
 */
export class BoundedBytes {
  readonly #max: number
  readonly #shares: QuotaCounts
  readonly #total: Count

  /** @param bounds the most bytes in all, and the counters for the total and for each principal */
  constructor(bounds: { max: number; total: Count; shares: QuotaCounts }) {
    this.#max = bounds.max
    this.#total = bounds.total
    this.#shares = bounds.shares
  }

  /** Counts bytes of a principal. Returns false, and counts nothing, if that would exceed a limit. */
  take(principalId: string, bytes: number): boolean {
    if (this.#total.value + bytes > this.#max || !this.#shares.take(principalId, bytes)) return false
    this.#total.add(bytes)
    return true
  }

  /**
   * Counts bytes even beyond the limits, because they are in memory already; check `hasCapacity` before
   * sending more.
   */
  add(principalId: string, bytes: number): void {
    this.#shares.add(principalId, bytes)
    this.#total.add(bytes)
  }

  release(principalId: string, bytes: number): void {
    this.#shares.release(principalId, bytes)
    this.#total.add(-bytes)
  }

  /** Whether both the principal and the total are below their limits. */
  hasCapacity(principalId: string): boolean {
    return this.#total.value < this.#max && this.#shares.hasCapacity(principalId)
  }
}

/** 503 while clients have left too many bytes unread. */
export const tooManyUnreadBytes = refuse(
  'overloaded',
  'Too many bytes of answers are waiting to be read: read open answers to their end, then try again',
  { retryAfterSecs: 1 },
)
