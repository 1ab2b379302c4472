import { compareHlc } from '../../src/strand/hlc.js'
import type { Table } from '../store/tables/table.js'
import type { Environment } from '../store/environment.js'
import { blockCount, rawRecordAt, type RawRecord } from '../store/tables/record-codec.js'

/** A record of an old shard. */
export interface OldRecord {
  shard: number
  record: RawRecord
}

/** The logs of several shards as one: by clock, and where two shards had the same reading, by hash. */
export function* mergedLogs(shards: readonly Environment[]): Generator<OldRecord> {
  const open = shards
    .map((environment, shard) => ({ shard, records: recordsOf(environment.blocks, shard) }))
    .flatMap(({ shard, records }) => {
      const first = records.next()
      return first.done === true ? [] : [{ shard, records, record: first.value }]
    })
  while (open.length > 0) {
    const next = open.reduce((least, one) => (isBefore(one.record, least.record) ? one : least))
    yield next
    const following = next.records.next()
    if (following.done === true) open.splice(open.indexOf(next), 1)
    else next.record = following.value
  }
}

/** Imported records of several shards, in the order in which they are stored. */
export function* importedRecords(shards: readonly Environment[]): Generator<OldRecord> {
  for (const [shard, { importedBlocks }] of shards.entries()) {
    for (const record of recordsOf(importedBlocks, shard)) yield { shard, record }
  }
}

function* recordsOf(blocks: Table, shard: number): Generator<RawRecord> {
  for (const { key, value } of blocks.getRange({})) {
    const blockNo = key.readUIntBE(0, 6)
    const block = Buffer.from(value)
    const count = blockCount(block)
    for (let position = 0; position < count; position++) {
      yield whole(() => rawRecordAt(block, position), `shard ${shard}, block ${blockNo}, record ${position}`)
    }
  }
}

function whole<T>(read: () => T, place: string): T {
  try {
    return read()
  } catch (error) {
    throw new Error(`The stored data is damaged at ${place}`, { cause: error })
  }
}

function isBefore(left: RawRecord, right: RawRecord): boolean {
  const order = compareHlc(left.hlc, right.hlc)
  return order < 0 || (order === 0 && left.hash < right.hash)
}
