import type { LoggedHead } from '../../src/strand/server-log.js'
import type { Environment } from './environment.js'
import { seqMax } from './tables.js'

/*
 * Which record of the server log tells of a strand, and what: an index of the log, which can be made again from it
 * (docs/adr/0023-server-log.md). It lies in the shard of the log.
 */

/** A head and the record of the log that tells of it. */
export interface FoundHead {
  head: LoggedHead
  logSeq: number
}

const HASH_BYTES = 32

/** Shorter than every other key. */
const INDEXED_KEY = Buffer.from('indexed')

/** The newest head of a strand that the log tells of by a record before `size`. */
export function loggedHead(
  { logHeads }: Environment,
  strand: string,
  size: number = seqMax,
): FoundHead | undefined {
  if (size === 0) return undefined
  const range = {
    start: headKey(strand, size - 1),
    end: headKey(strand, 0),
    reverse: true,
    inclusiveEnd: true,
    limit: 1,
  }
  for (const { key, value } of logHeads.getRange(range)) {
    const head = { strand, size: value.readUIntBE(0, 6), hash: value.toString('hex', 6, 6 + HASH_BYTES) }
    return { head, logSeq: key.readUIntBE(HASH_BYTES, 6) }
  }
  return undefined
}

/** The seq of the last record of the log that is in the index; 0, its genesis record, where none is. */
export function lastIndexed({ logHeads }: Environment): number {
  return logHeads.get(INDEXED_KEY)?.readUIntBE(0, 6) ?? 0
}

/** Writes what records of the log tell, in their order, within the caller's transaction. */
export function putLoggedHeads(
  { logHeads }: Environment,
  records: ReadonlyMap<number, readonly LoggedHead[]>,
): void {
  for (const [logSeq, heads] of records) {
    for (const { strand, size, hash } of heads) {
      const value = Buffer.allocUnsafe(6 + HASH_BYTES)
      value.writeUIntBE(size, 0, 6)
      value.write(hash, 6, 'hex')
      logHeads.put(headKey(strand, logSeq), value)
    }
    const indexed = Buffer.allocUnsafe(6)
    indexed.writeUIntBE(logSeq, 0, 6)
    logHeads.put(INDEXED_KEY, indexed)
  }
}

function headKey(strand: string, logSeq: number): Buffer {
  const key = Buffer.allocUnsafe(HASH_BYTES + 6)
  key.write(strand, 0, 'hex')
  key.writeUIntBE(logSeq, HASH_BYTES, 6)
  return key
}
