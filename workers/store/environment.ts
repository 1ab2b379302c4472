import type { Database, RootDatabase } from 'lmdb'
import { assert } from '../../src/base/assert.js'
import type { LoggedTableName, TableName } from '../../src/store-files/store-tables.js'
import type { CheckedTable, Table } from './tables/checked-table.js'
import type { StrandRuns } from './tables/strand-runs.js'
import type { StrandTrees } from './tables/strand-trees.js'

/** Their rows are in src/store-files/store-tables.ts, and the formats of their keys in tables.ts. */
export type Tables = {
  [Name in TableName]: Name extends 'blocks' | 'importedBlocks'
    ? Table
    : Name extends LoggedTableName
      ? CheckedTable
      : Database<Buffer, Buffer>
}

/** One shard's LMDB environment. */
export interface Environment extends Tables {
  root: RootDatabase<Buffer, Buffer>
  /** The locations of each strand's records. */
  runs: StrandRuns
  /** The roots of the complete subtrees of each strand's tree. */
  trees: StrandTrees
}

export function rowCount(table: CheckedTable | Table): number {
  const { entryCount } = table.getStats() as { entryCount: number }
  return entryCount
}

/**
 * Runs `body` as one transaction and returns when the transaction is on disk. A body that returns a promise
 * is rejected, because the commit would be deferred and could be lost in a crash.
 * @throws the error of `body`, with nothing written; after any other error the outcome is unknown
 */
export function commitDurably(environment: Environment, body: () => void): void {
  usedUpTo.delete(environment)
  environment.root.transactionSync(() => {
    const result: unknown = body()
    assert(result === undefined, 'the body of a transaction is synchronous')
  })
}

/**
 * Results of `usedBytes` since the last transaction: a query of LMDB takes a twentieth of the time of a
 * single write.
 */
const usedUpTo = new WeakMap<Environment, number>()

/** Bytes of the data file up to the end of its last used page. */
export function usedBytes(environment: Environment): number {
  let bytes = usedUpTo.get(environment)
  if (bytes === undefined) {
    const { lastPageNumber, pageSize } = environment.root.getStats() as {
      lastPageNumber: number
      pageSize: number
    }
    bytes = (lastPageNumber + 1) * pageSize
    usedUpTo.set(environment, bytes)
  }
  return bytes
}
