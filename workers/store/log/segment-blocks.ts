import { createHash } from 'node:crypto'
import { assert } from '../../../src/base/assert.js'
import type { SegmentRewrite, SegmentRow } from '../../../src/protocol/cluster-log-messages.js'
import { bodyCommitment } from '../../../src/strand/hash.js'
import {
  blockCount,
  blockOverhead,
  bodyAt,
  isWhole,
  recordInfoAt,
  recordAt,
  type StoredRecord,
  viewAt,
  writeImmutableBytes,
} from '../tables/record-codec.js'
import { blockKey, runKey } from '../tables/tables.js'
import { newlyErased } from './erased-positions.js'
import { changeBytes, decodeChanges, encodeChanges, type RowChange, writeHead } from './row-change.js'
import { blockTableIds } from '../../../src/store-files/store-tables.js'

/*
 * The plaintext part of a segment of a cluster's log: its blocks, followed by the commitment of each erased
 * record in them. The header contains a digest over the bytes that an erasure does not change. It covers, for
 * each block:
 *
 *   table u8, bytes of the key u16, bytes of the block and one u32, key: as in row-change.ts
 *   count and offsets of the block's records
 *   of each record: its bytes without checksum, mark of erasure, salt and body; then its body commitment,
 *     32 bytes
 */

/** The table number for commitments of erased records, by agent number and seq. */
export const erasedCommitments = 254

const COMMITMENT_BYTES = 32

/** Returns the body commitment of an erased record, 32 bytes; undefined if it is not known. */
export type CommitmentOf = (record: Pick<StoredRecord, 'agentNo' | 'seq'>) => Buffer | undefined

/**
 * Receives each record, whose bytes are views, and its body commitment, 64 hex digits.
 * @throws Error to reject the record
 */
export type OnRecord = (record: StoredRecord, commitment: string) => void

/** Encodes blocks, and computes their digest, 64 hex digits. */
export function encodeBlocks(
  blocks: readonly RowChange[],
  commitmentOf: CommitmentOf,
): { bytes: Buffer; digest: string } {
  const erased: RowChange[] = []
  const digest = digestOf(blocks, (record) => {
    const value = commitmentOf(record)
    erased.push({ table: erasedCommitments, key: runKey(record.agentNo, record.seq), value })
    return value
  })
  return { bytes: bytesOf([...blocks, ...erased]), digest }
}

/** Decodes blocks. @throws Error if the bytes are not the result of `encodeBlocks` or of an erasure in it */
export function decodeBlocks(bytes: Buffer, take?: OnRecord): { blocks: RowChange[]; digest: string } {
  const { blocks, commitments } = partition(bytes)
  assert(
    blocks.every(({ value }) => value !== undefined && isWhole(value)),
    'records match their checksums',
  )
  let used = 0
  const commitmentOf: CommitmentOf = ({ agentNo, seq }) => {
    used += 1
    return commitments.get(textOf(runKey(agentNo, seq)))
  }
  const digest = digestOf(blocks, commitmentOf, take)
  assert(used === commitments.size, 'each commitment belongs to an erased record')
  return { blocks, digest }
}

/**
 * Erases records in the rows of the segment that contains their block.
 * @param change the block after the erasure
 * @returns the positions of the erased records, and the new rows
 */
export function eraseInRows(
  rows: readonly SegmentRow[],
  change: RowChange,
): { positions: number[]; rewrites: SegmentRewrite[] } {
  const { blocks, commitments } = partition(Buffer.concat(rows.map((row) => row.blocks)))
  const at = blocks.findIndex(({ table, key }) => table === change.table && key.equals(change.key))
  const before = blocks[at]?.value
  assert(before !== undefined, 'the segment of a block contains it')
  assert(change.value?.length === before.length, 'an erased block keeps its length')
  const positions = newlyErased(before, change.value)
  for (const position of positions) {
    const { agentNo, seq, salt, body } = recordAt(before, position)
    commitments.set(textOf(runKey(agentNo, seq)), Buffer.from(bodyCommitment(salt, body), 'hex'))
  }
  blocks[at] = change
  const erased = [...commitments].map(([key, value]) => ({
    table: erasedCommitments,
    key: Buffer.from(key, 'latin1'),
    value,
  }))
  const after = bytesOf([...blocks, ...erased])
  const bytes = Math.ceil(after.length / rows.length)
  const rewrites = rows.map(({ segment, part, hash }, index) => ({
    segment,
    part,
    hash,
    blocks: after.subarray(index * bytes, (index + 1) * bytes),
  }))
  return { positions, rewrites }
}

/** Encodes changes into new memory. */
export function bytesOf(changes: readonly RowChange[]): Buffer {
  const bytes = Buffer.allocUnsafe(changes.reduce((sum, change) => sum + changeBytes(change), 0))
  encodeChanges(changes).write(bytes)
  return bytes
}

function partition(bytes: Buffer): { blocks: RowChange[]; commitments: Map<string, Buffer> } {
  const blocks: RowChange[] = []
  const commitments = new Map<string, Buffer>()
  for (const change of decodeChanges(bytes)) {
    const { table, key, value } = change
    assert(value !== undefined, 'a block is never removed')
    if (table === erasedCommitments) commitments.set(textOf(key), value)
    else blocks.push(change)
  }
  return { blocks, commitments }
}

/** Reused for most blocks, because hashing is synchronous. */
const scratch = Buffer.allocUnsafe(65_536)
/** An upper bound for the bytes before a block. */
const HEAD_BYTES = 64

function digestOf(blocks: readonly RowChange[], commitmentOf: CommitmentOf, take?: OnRecord): string {
  const digest = createHash('sha256')
  for (const change of blocks) digest.update(digestedBytes(change, commitmentOf, take))
  return digest.digest('hex')
}

/** The bytes of a block that the digest covers. */
function digestedBytes(change: RowChange, commitmentOf: CommitmentOf, take?: OnRecord): Buffer {
  const { table, key, value: block } = change
  assert(blockTableIds.has(table) && block !== undefined, 'plaintext rows are blocks')
  assert(key.length === blockKey(0).length, 'a block has a number')
  const count = blockCount(block)
  const recordsAt = blockOverhead(count)
  const end = block.readUInt32LE(recordsAt - 4)
  assert(block.readUInt32LE(2) === recordsAt && end === block.length, 'records fill their block')
  const bytesMax = HEAD_BYTES + block.length + count * COMMITMENT_BYTES
  const target = bytesMax > scratch.length ? Buffer.allocUnsafe(bytesMax) : scratch
  let at = writeHead(target, 0, change)
  at += block.copy(target, at, 0, recordsAt)
  for (let position = 0; position < count; position++) {
    const { salt, body, erased } = bodyAt(block, position)
    if (erased)
      assert(
        [...salt, ...body].every((byte) => byte === 0),
        'an erased record has no body',
      )
    const commitment = erased
      ? erasedCommitment(recordInfoAt(block, position), commitmentOf)
      : bodyCommitment(salt, body)
    take?.(viewAt(block, position), commitment)
    at = writeImmutableBytes(block, position, { target, at })
    at += target.write(commitment, at, 'hex')
  }
  return target.subarray(0, at)
}

/** @returns 64 hex digits */
function erasedCommitment(record: Parameters<CommitmentOf>[0], commitmentOf: CommitmentOf): string {
  const commitment = commitmentOf(record)
  assert(commitment?.length === COMMITMENT_BYTES, 'the commitment of an erased record is stored')
  return commitment.toString('hex')
}

/** The bytes as a Latin-1 string, for keys of maps. */
function textOf(key: Buffer): string {
  return key.toString('latin1')
}
