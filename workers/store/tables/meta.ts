import { zeroHlc, type Hlc } from '../../../src/strand/hlc.js'
import type { Environment } from '../environment.js'
import type { TableSpec } from '../table-spec.js'

/*
 * Rows of the table `meta`. Two more rows describe only their own store and are not moved to others: the log
 * position (workers/store/log/position.ts) and the last block whose runs are in the table
 * (workers/store/tables/strand-runs.ts).
 */

const floorKey = Buffer.from('clock-floor')
const REPORTED = 'last-told '

/**
 * The minimum reading of the shard's clock, independent of its last record; zero if there is none. Strands
 * from a reshard had the clocks of other shards, whose readings are in stream cursors: a new record must not
 * be before such a cursor (docs/adr/0021-resharding.md). Imported records can also be ahead of the shard's
 * clock (docs/adr/0022-import.md).
 */
export function readClockFloor({ meta }: Environment): Hlc {
  const value = meta.get(floorKey)
  return value === undefined ? zeroHlc : { ms: value.readUIntBE(0, 6), counter: value.readUInt16BE(6) }
}

/** Writes the minimum reading, within the caller's transaction. */
export function putClockFloor({ meta }: Environment, { ms, counter }: Hlc): void {
  const value = Buffer.alloc(8)
  value.writeUIntBE(ms, 0, 6)
  value.writeUInt16BE(counter, 6)
  meta.put(floorKey, value)
}

/**
 * The content of the last audit record of a type that is written only when it changes; undefined before the
 * first.
 */
export function lastReported({ meta }: Environment, type: string): string | undefined {
  return meta.get(Buffer.from(REPORTED + type))?.toString()
}

/** The content of audit records that are written only when it changes, by type. */
export const reported: TableSpec<Environment, Map<string, string>> = {
  open: (environment) => environment,
  // Belongs to the audit strand, which is always in the first shard.
  moves: { meta: (row) => (isLastReported(row.key) ? [{ ...row, shard: 0 }] : []) },
  changes: () => new Map(),
  // It is reserved with the record.
  rows: () => 0,
  put({ meta }, changes) {
    for (const [type, body] of changes) meta.put(Buffer.from(REPORTED + type), Buffer.from(body))
  },
}

/** Whether a row of `meta` is the content of an audit record. */
function isLastReported(key: Buffer): boolean {
  return key.toString().startsWith(REPORTED)
}
