import { structureFault } from '../store-files/lmdb-file.js'
import { isWholeRow } from '../store-files/row-checksum.js'
import { isTableOfFile } from '../store-files/store-tables.js'

/**
 * Tables without a checksum at the end of each row: each record has a checksum of its own, and erased ones have nothing
 * to protect.
 */
const tablesOfRecords: ReadonlySet<string> = new Set(['blocks', 'imported-blocks', 'filling'])

/**
 * Checks the data file of a shard that nobody else writes to: every page, and every row except records, which
 * `strandfast verify` and `backup` check.
 * @returns what is wrong with it, or undefined
 */
export function storeFault(path: string): string | undefined {
  return structureFault(path, {
    table: isTableOfFile,
    row: (table, key, value) => tablesOfRecords.has(table) || isWholeRow(key, value),
  })
}
