import type { ShardCopy } from '../../src/protocol/store-tasks.js'
import { assert } from '../../src/base/assert.js'
import { limits } from '../../src/base/limits/limits.js'
import { isWholeRow, ROW_CHECKSUM_BYTES, rowOf } from '../../src/store-files/row-checksum.js'
import { storeTables, type TableName } from '../../src/store-files/store-tables.js'
import { commitDurably, type Environment } from './environment.js'
import { openEnvironment } from './open-environment.js'
import { positionKey } from './log/position.js'
import type { RowOf } from './log/record-check.js'
import { changeBytes, type RowChange } from './log/row-change.js'
import { blockTableIds, local, tableIds } from '../../src/store-files/store-tables.js'
import type { Snapshot } from './snapshots.js'
import { CheckedTable, type Table } from './tables/checked-table.js'
import { blockCount } from './tables/record-codec.js'
import { runsCoveredKey } from './tables/strand-runs.js'
import { treesCoveredKeys } from './tables/strand-trees.js'
import { decodeRun, isImportedBlock } from './tables/tables.js'

/*
 * Moves rows from one store to another: as they are stored, with their checksums, in the order of their keys.
 * Copies, checkpoints, pushes to a cluster and reshards read and write rows only through this file.
 */

export interface StoredRow {
  table: TableName
  key: Buffer
  value: Buffer
}

/** Tables whose rows are blocks of records. */
const blockTables = ['blocks', 'importedBlocks'] as const

/** The rows of a table, without a check of their checksums: a copy is checked as a whole. */
export function rowsOf(
  { environment, transaction }: Snapshot,
  table: TableName,
): Iterable<{ key: Buffer; value: Buffer }> {
  return rawTable(environment, table).getRange({ transaction })
}

const derivedMeta = [positionKey, runsCoveredKey, ...Object.values(treesCoveredKeys)]

/** The blocks of a store, in the order of their numbers. */
export function* blocksOf(snapshot: Snapshot): Generator<RowChange> {
  for (const name of blockTables)
    for (const { key, value } of rowsOf(snapshot, name)) yield { table: tableIds[name], key, value }
}

/**
 * The rows that are the same on all nodes: those of the logged tables. Without blocks, which stay in
 * segments, and without what each store derives itself: runs and subtrees of its blocks, and its log position.
 * @throws Error for a row that does not match its checksum
 */
export function* replicatedRows(snapshot: Snapshot): Generator<RowChange> {
  for (const name of storeTables) {
    const table = tableIds[name]
    if (table === local || blockTableIds.has(table)) continue
    for (const { key, value } of rowsOf(snapshot, name)) {
      if (name === 'meta' && derivedMeta.some((derived) => derived.equals(key))) continue
      assert(isWholeRow(key, value), `a row of ${name} matches its checksum`)
      if (name === 'strands' && !isOfImported(value)) continue
      yield { table, key, value }
    }
  }
}

/**
 * Splits rows into parts of limited size; a larger row is a separate part. Without rows, there is one empty
 * part.
 */
export function* partsOf(rows: Iterable<RowChange>): Generator<RowChange[]> {
  let part: RowChange[] = []
  let bytes = 0
  for (const row of rows) {
    const more = changeBytes(row)
    if (part.length > 0 && bytes + more > limits.clusterPartBytes) {
      yield part
      part = []
      bytes = 0
    }
    part.push(row)
    bytes += more
  }
  yield part
}

/** Returns a function that reads rows by the number of their table. */
export function rowFinder(environment: Environment): RowOf {
  const tables = new Map<number | typeof local, Table>(
    storeTables.map((name) => [tableIds[name], rawTable(environment, name)]),
  )
  return (table, key) => tables.get(table)?.get(key)
}

/** Writes rows to a new store, many in one transaction. */
export class RowWriter {
  readonly #environment: Environment
  readonly #onBytes: (bytes: number) => void
  #rows: (StoredRow & { isLast: boolean })[] = []
  #bytes = 0
  readonly #lastKeys = new Map<TableName, Buffer>()
  readonly #written = new Map<TableName, number>()

  /** @param onBytes called with the bytes of rows before they are written; may throw to stop the writing */
  constructor(environment: Environment, onBytes: (bytes: number) => void = () => {}) {
    this.#environment = environment
    this.#onBytes = onBytes
  }

  /** The number of appended rows, by table. */
  get written(): ReadonlyMap<TableName, number> {
    return this.#written
  }

  /** Appends a row, with its checksum, after all others of its table. */
  append(row: StoredRow): void {
    this.#add(row, true)
  }

  /** Puts a row, without its checksum. It replaces a row with the same key. */
  put({ table, key, value }: StoredRow): void {
    const last = this.#lastKeys.get(table)
    const isLast = last === undefined || key.compare(last) > 0
    if (isLast) this.#lastKeys.set(table, key)
    this.#add({ table, key, value: rowOf(key, value) }, isLast)
  }

  /** Writes the pending rows, and returns when they are on disk. */
  flush(): void {
    const rows = this.#rows
    if (rows.length === 0) return
    this.#onBytes(this.#bytes)
    commitDurably(this.#environment, () => {
      for (const { table, key, value, isLast } of rows) {
        // Appending splits no page, so no copy of a body remains in the old half (docs/adr/0015-erasure.md).
        const options = isLast ? { append: true } : undefined
        const put: unknown = rawTable(this.#environment, table).putSync(key, value, options)
        assert(!isLast || put === true, 'an appended row comes after all others')
      }
    })
    this.#rows = []
    this.#bytes = 0
  }

  #add({ table, key, value }: StoredRow, isLast: boolean): void {
    this.#rows.push({ table, key, value, isLast })
    this.#bytes += key.length + value.length
    this.#written.set(table, (this.#written.get(table) ?? 0) + 1)
    if (this.#rows.length >= limits.movedRowsMax || this.#bytes >= limits.movedBytesMax) this.flush()
  }
}

/**
 * Copies a store into a new one at `path`, an empty directory. Resolves when the copy is on disk. Copies only
 * live rows: no free pages or unused parts of pages, which may hold erased bodies, and no rows of the
 * scrubber (docs/adr/0020-backup.md).
 * @param onBytes called with the bytes of rows copied since the last call; may throw to stop the copy
 */
export async function copyStore(
  snapshot: Snapshot,
  path: string,
  onBytes: (bytes: number) => void,
): Promise<ShardCopy> {
  const target = openEnvironment(path, 'write')
  try {
    const writer = new RowWriter(target, onBytes)
    let records = 0
    for (const table of storeTables) {
      if (table === 'filling') continue
      for (const { key, value } of rowsOf(snapshot, table)) {
        // The copy has no log.
        if (table === 'meta' && key.equals(positionKey)) continue
        writer.append({ table, key, value })
        if (table === 'blocks' || table === 'importedBlocks') records += blockCount(value)
      }
    }
    writer.flush()
    return { agents: writer.written.get('names') ?? 0, records }
  } finally {
    await target.root.close()
  }
}

/** A table whose rows include their checksums. */
function rawTable(environment: Environment, name: TableName): Table {
  const table: CheckedTable | Table = environment[name]
  return table instanceof CheckedTable ? table.raw : table
}

function isOfImported(run: Buffer): boolean {
  return isImportedBlock(decodeRun(run.subarray(0, -ROW_CHECKSUM_BYTES)).blockNo)
}
