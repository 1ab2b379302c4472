import type { Check } from '../../../src/base/shape.js'
import { jsonOf } from './tables.js'

/*
 * Rows are written by this program, but a data directory can be changed or come from elsewhere. So a row is
 * checked when it is read: an invalid one fails the command that needs it, and nothing else.
 */

/** A row that this program did not write. */
export class InvalidRow extends Error {
  /** Its table and key. */
  readonly row: string

  constructor(row: string) {
    super(`The row ${row} is invalid: restore the data directory from a backup`)
    this.row = row
  }
}

/** The value of a row. @param row its table and key @throws InvalidRow */
export function checkedRow<Row>(row: string, bytes: Uint8Array, check: Check<Row>): Row {
  const value = jsonOf(bytes)
  if (!check(value)) throw new InvalidRow(row)
  return value
}
