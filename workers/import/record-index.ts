import { appendFileSync, closeSync, openSync, readSync } from 'node:fs'
import { assert } from '../../src/base/assert.js'
import { isReservedType } from '../../src/strand/record-type.js'
import type { StoredRecord } from '../store/tables/record-codec.js'

/*
 * The hash and kind of each staged record of an import, by seq, in a file beside the staged records. Records
 * that name earlier ones are checked with it, so memory does not grow with the export.
 */

/** What a record is to the records that name it. */
export interface IndexedRecord {
  hash: string
  kind: 'record' | 'proposal' | 'system'
}

export type FindEarlier = (seq: number) => IndexedRecord | undefined

const kinds: readonly IndexedRecord['kind'][] = ['record', 'proposal', 'system']

/** A hash and the number of a kind. */
const ROW_BYTES = 33

export function indexPath(stage: string): string {
  return `${stage}.index`
}

export function indexedRecord({ hash, type }: Pick<StoredRecord, 'hash' | 'type'>): IndexedRecord {
  if (type === 'sys/proposal') return { hash, kind: 'proposal' }
  return { hash, kind: isReservedType(type) ? 'system' : 'record' }
}

/** Appends the records of a part. @throws Error if the disk is full */
export function appendIndex(stage: string, records: readonly StoredRecord[]): void {
  const rows = records
    .map(indexedRecord)
    .map(({ hash, kind }) => Buffer.concat([Buffer.from(hash, 'hex'), Buffer.of(kinds.indexOf(kind))]))
  appendFileSync(indexPath(stage), Buffer.concat(rows), { mode: 0o600 })
}

/** Calls `use` with a function that finds the records of earlier parts of an export that begins at `fromSeq`. */
export function withIndex<T>(stage: string, fromSeq: number, use: (find: FindEarlier) => T): T {
  let file: number | undefined
  const find: FindEarlier = (seq) => {
    file ??= openSync(indexPath(stage), 'r')
    const row = Buffer.alloc(ROW_BYTES)
    if (readSync(file, row, 0, ROW_BYTES, (seq - fromSeq) * ROW_BYTES) === 0) return undefined
    const kind = kinds[row.readUInt8(ROW_BYTES - 1)]
    assert(kind !== undefined, 'the index has kinds of records')
    return { hash: row.toString('hex', 0, ROW_BYTES - 1), kind }
  }
  try {
    return use(find)
  } finally {
    if (file !== undefined) closeSync(file)
  }
}
