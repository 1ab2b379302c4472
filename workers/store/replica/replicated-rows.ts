import type { Transaction } from 'lmdb'
import { assert } from '../../../src/base/assert.js'
import { isWholeRow, ROW_CHECKSUM_BYTES } from '../../../src/store-files/row-checksum.js'
import { CheckedTable } from '../tables/checked-table.js'
import type { Environment } from '../environment.js'
import { runsCoveredKey } from '../tables/strand-runs.js'
import { decodeRun, isImportedBlock } from '../tables/tables.js'
import { positionKey } from '../log/position.js'
import type { RowChange } from '../log/row-change.js'
import { local, tableIds } from '../log/table-ids.js'

/**
 * The rows that nodes have in common, as a snapshot shows them: those of all tables that are in the log. Blocks are left
 * out: they are in segments for good. So is what each store has made of its own blocks: its runs, and how far it is.
 */
export function* replicatedRows(environment: Environment, transaction: Transaction): Generator<RowChange> {
  for (const [name, id] of Object.entries(tableIds)) {
    if (id === local || id === tableIds.blocks || id === tableIds.importedBlocks) continue
    const table = tableOf(environment, name)
    for (const { key, value } of table.raw.getRange({ transaction })) {
      if (id === tableIds.meta && (key.equals(positionKey) || key.equals(runsCoveredKey))) continue
      assert(isWholeRow(key, value), `a row of ${name} matches its checksum`)
      if (id === tableIds.strands && !isOfImported(value)) continue
      yield { table: id, key: Buffer.from(key), value: Buffer.from(value) }
    }
  }
}

/** The blocks of a store, in the order of their numbers. */
export function* blocksOf({ blocks, importedBlocks }: Environment): Generator<RowChange> {
  for (const [table, rows] of [
    [tableIds.blocks, blocks],
    [tableIds.importedBlocks, importedBlocks],
  ] as const) {
    for (const { key, value } of rows.getRange()) {
      yield { table, key: Buffer.from(key), value: Buffer.from(value) }
    }
  }
}

function isOfImported(run: Buffer): boolean {
  return isImportedBlock(decodeRun(run.subarray(0, -ROW_CHECKSUM_BYTES)).blockNo)
}

function tableOf(environment: Environment, name: string): CheckedTable {
  const tables: Record<string, unknown> = { ...environment }
  const table = tables[name]
  if (!(table instanceof CheckedTable)) throw new Error(`The table ${name} has no checksums`)
  return table
}
