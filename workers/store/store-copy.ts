import type { ShardCopy } from '../../src/protocol/store-tasks.js'
import { assert } from '../../src/base/assert.js'
import { CheckedTable } from './tables/checked-table.js'
import type { Table } from './tables/table.js'
import { commitDurably, openEnvironment } from './environment.js'
import { positionKey } from './log/position.js'
import { blockCount } from './tables/record-codec.js'
import type { Snapshot } from './snapshots.js'

/** A row as it is stored. */
interface Row {
  key: Buffer
  value: Buffer
}

/** Roughly how many bytes of rows one transaction of a copy writes: it holds them in memory until it commits. */
const COMMIT_BYTES = 16_777_216

/**
 * Copies a store as a snapshot shows it, row by row, into a new one at `path`, an empty directory, and returns when it
 * is on disk. Live rows are copied and nothing else: neither free pages, nor unused parts of pages, which may hold
 * erased bodies, nor the rows with which the scrubber overwrites these (docs/adr/0020-backup.md).
 * @param onBytes called with the bytes of rows copied since the last call; ends the copying by throwing
 */
export async function copyStore(
  { environment, transaction }: Snapshot,
  path: string,
  onBytes: (bytes: number) => void,
): Promise<ShardCopy> {
  const target = openEnvironment(path, 'write')
  try {
    const { root: _root, runs: _runs, filling: _filling, ...tables } = target
    const sources: Record<string, unknown> = { ...environment }
    let records = 0
    for (const [name, to] of Object.entries(tables)) {
      const from = sources[name] as CheckedTable | Table | undefined
      // A table that the directory does not have yet: it was made by an earlier version.
      if (from === undefined) continue
      for (const all of batches(rawOf(from).getRange({ transaction }))) {
        // Where the copy lies, there is no log.
        const rows = to === target.meta ? all.filter(({ key }) => !key.equals(positionKey)) : all
        onBytes(bytesOf(rows))
        commitDurably(target, () => {
          for (const { key, value } of rows) {
            // In order and after all others: pages are filled and never split.
            const put: unknown = rawOf(to).putSync(key, value, { append: true })
            assert(put === true, 'rows are read in the order of their keys')
          }
        })
        if (to === target.blocks || to === target.importedBlocks)
          records += rows.reduce((sum, { value }) => sum + blockCount(value), 0)
      }
    }
    return { agents: target.names.getKeysCount({}), records }
  } finally {
    await target.root.close()
  }
}

/** A table whose rows are copied as they are, checksums too. */
function rawOf(table: CheckedTable | Table): Table {
  return table instanceof CheckedTable ? table.raw : table
}

/** The rows in batches: each is as many as one transaction takes. */
function* batches(rows: Iterable<Row>): Generator<Row[]> {
  let batch: Row[] = []
  let bytes = 0
  for (const row of rows) {
    batch.push(row)
    bytes += row.key.length + row.value.length
    if (bytes < COMMIT_BYTES && batch.length < COMMIT_ROWS) continue
    yield batch
    batch = []
    bytes = 0
  }
  if (batch.length > 0) yield batch
}

/** Rows that one transaction of a copy writes. */
const COMMIT_ROWS = 65_536

function bytesOf(rows: readonly Row[]): number {
  return rows.reduce((sum, { key, value }) => sum + key.length + value.length, 0)
}
