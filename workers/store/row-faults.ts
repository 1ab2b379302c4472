import type { CheckedTable } from './tables/checked-table.js'
import { InvalidRow } from './tables/row-shape.js'

/** The rows that the program refuses to read. */
export function* invalidRows(
  table: CheckedTable,
  read: (key: Buffer, value: Buffer) => unknown,
): Generator<string> {
  for (const { key, value } of table.getRange({})) {
    try {
      read(key, value)
    } catch (error) {
      if (!(error instanceof InvalidRow)) throw error
      yield error.message
    }
  }
}

/** A pair of tables that must have the same number of rows, and has not. */
export function* differs(
  [oneName, one]: [string, CheckedTable],
  [otherName, other]: [string, CheckedTable],
): Generator<string> {
  const counts = [one.getKeysCount({}), other.getKeysCount({})]
  if (counts[0] !== counts[1]) yield `There are ${counts[0]} ${oneName} and ${counts[1]} ${otherName}`
}
