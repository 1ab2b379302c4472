import type { Client } from 'pg'
import { crc32 } from 'node:zlib'
import { between, pick } from '../../../../scripts/crash-loop/seeded-random.mjs'
import { rowOf } from '../../../../src/store-files/row-checksum.js'
import { hashAt, blockCount } from '../../../../workers/store/tables/record-codec.js'
import { owed } from './history.js'
import { decodeChanges, encodeChanges, type RowChange } from '../../../../workers/store/log/row-change.js'
import { tableIds } from '../../../../src/store-files/store-tables.js'

/*
 * Forged records in the blocks of segments, by an attacker who knows the encoding and corrects all checksums.
 */

export const forgeryKinds = [
  'agent',
  'field',
  'newest record removed',
  'another table',
  'a foreign row',
] as const
export type ForgeryKind = (typeof forgeryKinds)[number]

interface Segment {
  shard: number
  segment: string
  blocks: Buffer
}

/** Draws a segment and changes its records. @returns its SQL; undefined if the log lacks what it needs */
export async function forgeries(
  database: Client,
  kind: ForgeryKind,
  random: () => number,
): Promise<string | undefined> {
  const segments = (await segmentsOf(database)).filter(
    ({ blocks }) => lastBlock([...decodeChanges(blocks)]) >= 0,
  )
  const ofClients = segments.filter(({ blocks }) => blocks.includes(owed))
  const shard = pick(random, ofClients)?.shard
  const newest = ofClients.findLast((one) => one.shard === shard)
  const segment = kind === 'newest record removed' ? newest : pick(random, segments)
  return segment && forged(kind, segment, random)
}

/** The forgery of a kind in the segment that contains a record. */
export async function forgeryOf(database: Client, kind: ForgeryKind, hash: string): Promise<string> {
  const bytes = Buffer.from(hash, 'hex')
  const segment = (await segmentsOf(database)).find(({ blocks }) => blocks.includes(bytes))
  const sql = segment && forged(kind, segment, () => 0)
  if (sql === undefined) throw new Error(`Expected a segment with the record ${hash}`)
  return sql
}

/** Segments of one row that contain blocks. */
async function segmentsOf(database: Client): Promise<Segment[]> {
  const { rows } = await database.query<Segment>(
    `SELECT shard, segment, blocks FROM strandfast_segments s WHERE length(blocks) > 0
      AND NOT EXISTS (SELECT 1 FROM strandfast_segments o WHERE o.shard = s.shard AND o.segment = s.segment AND o.part > 0)
      ORDER BY shard, segment::bigint`,
  )
  return rows
}

function forged(
  kind: ForgeryKind,
  { shard, segment, blocks }: Segment,
  random: () => number,
): string | undefined {
  const changes = [...decodeChanges(blocks)]
  const at = lastBlock(changes)
  const change = changes[at]
  if (change?.value === undefined) return undefined
  changes.splice(at, 1, ...changed(kind, { ...change, value: change.value }, random))
  const { bytes, write } = encodeChanges(changes)
  const after = Buffer.alloc(bytes)
  write(after)
  return `UPDATE strandfast_segments SET blocks = '\\x${after.toString('hex')}'::bytea WHERE shard = ${shard} AND segment = ${segment} AND part = 0`
}

/** The last change that is a block, and not the positions of erased records. */
function lastBlock(changes: readonly RowChange[]): number {
  return changes.findLastIndex(
    ({ value, table }) => value !== undefined && isOfBlocks(table) && isBlock(value),
  )
}

function isBlock(value: Buffer): boolean {
  const count = blockCount(value)
  return (
    count > 0 && 2 + 4 * (count + 1) <= value.length && value.readUInt32LE(2 + 4 * count) === value.length
  )
}

function isOfBlocks(table: number): boolean {
  return table === tableIds.blocks || table === tableIds.importedBlocks
}

function changed(
  kind: ForgeryKind,
  change: RowChange & { value: Buffer },
  random: () => number,
): RowChange[] {
  const { table, key, value } = change
  const block = Buffer.from(value)
  switch (kind) {
    case 'agent':
      // The number of the agent of the last record.
      return [{ ...change, value: withByte(block, AGENT_AT, random) }]
    case 'field':
      return [{ ...change, value: withByte(block, between(random, 4, 200), random) }]
    case 'newest record removed': {
      // A removed row is hashed by its key without a length, so the hashes of the records become a part of
      // the key.
      const hashes = Array.from({ length: blockCount(block) }, (_none, nth) =>
        Buffer.from(hashAt(block, nth), 'hex'),
      )
      return [{ table, key: Buffer.concat([key, ...hashes]), value: undefined }]
    }
    case 'another table':
      return [{ ...change, table: pick(random, [tableIds.apiKeys, tableIds.authEnded, tableIds.meta]) ?? 0 }]
    case 'a foreign row':
      return [
        change,
        {
          table: pick(random, [tableIds.apiKeys, tableIds.authEnded, tableIds.agents]) ?? 0,
          key: Buffer.alloc(0),
          value: rowOf(Buffer.alloc(0), Buffer.alloc(8)),
        },
      ]
  }
}

/** Offset of the agent's number in a record, as in record-codec.ts. */
const AGENT_AT = 8

/** Changes a byte of the last record in a block, and corrects its checksum. */
function withByte(block: Buffer, offset: number, random: () => number): Buffer {
  const position = blockCount(block) - 1
  const [start, end] = [block.readUInt32LE(2 + 4 * position), block.readUInt32LE(6 + 4 * position)]
  const at = Math.min(start + offset, end - 1)
  block[at] = (block[at] ?? 0) ^ (1 << between(random, 0, 2))
  block.writeUInt32LE(crc32(block.subarray(start + 4, end)), start)
  return block
}
