import { limits } from '../../src/base/limits/limits.js'
import { InvalidRow } from './tables/row-shape.js'

/** A write has set a row aside: it is decided again, without that row. */
export class RowSetAside extends Error {}

/**
 * Rows that a sweep of this thread could not handle: a proposal, a mail, an expiry. Each is logged once,
 * counted in the metrics, and skipped until the shard is opened again, so that the other rows are handled.
 */
export class SetAside {
  readonly #rows = new Set<string>()
  #failures: string[] = []

  /** The number of rows, at most `setAsideRowsMax`. */
  get count(): number {
    return this.#rows.size
  }

  has(row: string): boolean {
    return this.#rows.has(row)
  }

  /** What `read` returns; undefined if it meets an invalid row, which is set aside: a list shows the others. */
  unlessInvalid<Row>(read: () => Row): Row | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof InvalidRow)) throw error
      this.add(error.row, error)
      return undefined
    }
  }

  /** Sets a row aside. @param row its table and key */
  add(row: string, error: unknown): void {
    if (this.#rows.has(row) || this.#rows.size >= limits.setAsideRowsMax) return
    this.#rows.add(row)
    const cause = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.#failures.push(`The row ${row} was set aside: ${cause}`)
  }

  /** What was set aside since the last call, for the log. */
  takeFailures(): string[] {
    const failures = this.#failures
    this.#failures = []
    return failures
  }
}
