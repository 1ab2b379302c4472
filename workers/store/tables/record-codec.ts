import { crc32 } from 'node:zlib'
import { assert } from '../../../src/base/assert.js'
import { asBuffer } from '../../../src/base/bytes.js'
import type { Hlc } from '../../../src/strand/hlc.js'
import type { ShownRecord } from '../../../src/wire/render.js'

/** A stored record. The lines of its header (docs/FORMAT.md, Header) are computed from these fields. */
export interface StoredRecord extends ShownRecord {
  agentNo: number
  /** Index of the agent's key in the header; 0 is the key of the genesis record. */
  keyIndex: number
  /** 16 bytes; zeros once erased. */
  salt: Uint8Array
  /** True for a record from an ingest route, which the PostgreSQL sink copies. */
  ingested?: boolean
}

/*
 * Layout of a record in a block, little-endian (docs/adr/0002-storage-layout.md):
 *   0 crc32 u32 of everything after it     4 flags u8 (below)           5 keyIndex u8
 *   6 typeBytes u16                        8 agentNo u32               12 seq u48
 *  18 hlc ms u48                          24 hlc counter u16           26 hash 32
 *  58 prev 32                             90 salt 16                  106 signature 64, or sealedBy u48
 *  then the type (ASCII), then the body to the end
 * An erased record keeps its position and length: zeros for salt and body.
 */
const SIGNED = 1
const ERASED = 2
const SALT_AT = 90
const INGESTED = 4
/** The body of an erased record in a `StoredRecord`. */
const erasedBody = Buffer.from('null')
const noBody = Buffer.alloc(0)
const FIXED_BYTES = 106
const SIGNATURE_BYTES = 64
const SEALED_BY_BYTES = 6

/** Bytes that `record` takes in a block. */
export function recordBytes(record: StoredRecord): number {
  const sealBytes = record.signature === undefined ? SEALED_BY_BYTES : SIGNATURE_BYTES
  return FIXED_BYTES + sealBytes + record.type.length + storedBody(record).length
}

/**
 * The body to store. For an imported erased record it is empty, because the length of the body is not known.
 */
function storedBody({ erased, body }: StoredRecord): Uint8Array {
  return erased === true ? noBody : body
}

/** Writes `record` at `at`, in `recordBytes(record)` bytes. @returns the offset after it */
export function writeRecord(target: Buffer, at: number, record: StoredRecord): number {
  const erased = record.erased === true
  target[at + 4] =
    (record.signature === undefined ? 0 : SIGNED) |
    (record.ingested === true ? INGESTED : 0) |
    (erased ? ERASED : 0)
  target[at + 5] = record.keyIndex
  target.writeUInt16LE(record.type.length, at + 6)
  target.writeUInt32LE(record.agentNo, at + 8)
  target.writeUIntLE(record.seq, at + 12, 6)
  target.writeUIntLE(record.hlc.ms, at + 18, 6)
  target.writeUInt16LE(record.hlc.counter, at + 24)
  target.write(record.hash, at + 26, 'hex')
  target.write(record.prev, at + 58, 'hex')
  if (erased) target.fill(0, at + SALT_AT, at + FIXED_BYTES)
  else target.set(record.salt, at + SALT_AT)
  let end = at + FIXED_BYTES
  if (record.signature === undefined) {
    assert(record.sealedBy !== undefined, 'a record is signed or sealed')
    end = target.writeUIntLE(record.sealedBy, end, SEALED_BY_BYTES)
  } else {
    target.set(record.signature, end)
    end += SIGNATURE_BYTES
  }
  end += target.write(record.type, end, 'latin1')
  const body = storedBody(record)
  target.set(body, end)
  end += body.length
  target.writeUInt32LE(crc32(target.subarray(at + 4, end)), at)
  return end
}

/**
 * Reads the record between two offsets of a block. The bytes are copied, because the next read of LMDB reuses
 * the buffer.
 * @throws Error if the checksum does not match: a damaged record is never served
 */
export function readRecord(block: Uint8Array, from: number, to: number): StoredRecord {
  return recordIn(Buffer.from(block.subarray(from, to)))
}

/** Decodes a record; salt, body and signature are views of `source`. @throws Error as `readRecord` does */
function recordIn(source: Buffer): StoredRecord {
  assert(source.length >= FIXED_BYTES + SEALED_BY_BYTES, 'a stored record is whole')
  assert(crc32(source.subarray(4)) === source.readUInt32LE(0), 'a stored record matches its checksum')
  const flags = source[4] ?? 0
  const signed = (flags & SIGNED) !== 0
  const typeAt = FIXED_BYTES + (signed ? SIGNATURE_BYTES : SEALED_BY_BYTES)
  const bodyAt = typeAt + source.readUInt16LE(6)
  const record: StoredRecord = {
    agentNo: source.readUInt32LE(8),
    seq: source.readUIntLE(12, 6),
    hlc: { ms: source.readUIntLE(18, 6), counter: source.readUInt16LE(24) },
    type: source.toString('latin1', typeAt, bodyAt),
    hash: source.toString('hex', 26, 58),
    prev: source.toString('hex', 58, 90),
    keyIndex: source[5] ?? 0,
    salt: source.subarray(SALT_AT, FIXED_BYTES),
    body: (flags & ERASED) === 0 ? source.subarray(bodyAt) : erasedBody,
  }
  if ((flags & ERASED) !== 0) record.erased = true
  if (signed) record.signature = source.subarray(FIXED_BYTES, typeAt)
  else record.sealedBy = source.readUIntLE(FIXED_BYTES, SEALED_BY_BYTES)
  if ((flags & INGESTED) !== 0) record.ingested = true
  return record
}

/*
 * A block: u16 count, then count+1 offsets u32 (the last is the block's end), then the records.
 */

/** Encodes records as the value of a block. */
export function encodeBlock(records: readonly StoredRecord[]): Buffer {
  const tableBytes = 2 + 4 * (records.length + 1)
  let total = tableBytes
  for (const record of records) total += recordBytes(record)
  const block = Buffer.allocUnsafe(total)
  block.writeUInt16LE(records.length, 0)
  let at = tableBytes
  for (let index = 0; index < records.length; index++) {
    block.writeUInt32LE(at, 2 + 4 * index)
    const record = records[index]
    assert(record !== undefined, 'the index is within the block')
    at = writeRecord(block, at, record)
  }
  block.writeUInt32LE(at, 2 + 4 * records.length)
  assert(at === total, 'a block is as long as its records')
  return block
}

/**
 * Maximum bytes of a block: with LMDB's page header it fills four pages, so that a point read copies little
 * and a commit of many records writes few values. A larger record is alone in its block.
 */
export const blockBytes = 4 * 4096 - 16

/** Maximum records in one block; positions are stored as u16. */
export const blockRecordsMax = 1_024

/** Bytes of a block without its records. */
export function blockOverhead(records: number): number {
  return 2 + 4 * (records + 1)
}

/** The number of records in a block. */
export function blockCount(block: Uint8Array): number {
  return asBuffer(block).readUInt16LE(0)
}

/** Reads the record at `position` (from 0) of a block. */
export function recordAt(block: Uint8Array, position: number): StoredRecord {
  const { from, to } = extentAt(block, position)
  return readRecord(block, from, to)
}

/** Like `recordAt`, but without a copy: the bytes of the block must not change. */
export function viewAt(block: Buffer, position: number): StoredRecord {
  const { from, to } = extentAt(block, position)
  return recordIn(block.subarray(from, to))
}

/**
 * Writes at `at` the bytes of the record at `position` that an erasure does not change: without checksum,
 * salt and body, and with the flag for erased records cleared.
 * @returns the offset after them
 */
export function writeImmutableBytes(
  block: Buffer,
  position: number,
  { target, at }: { target: Buffer; at: number },
): number {
  const { from } = extentAt(block, position)
  const typeAt = typeAtOf(block, from)
  const saltAt = at + block.copy(target, at, from + 4, from + SALT_AT)
  target[at] = (target[at] ?? 0) & ~ERASED
  return saltAt + block.copy(target, saltAt, from + FIXED_BYTES, typeAt + block.readUInt16LE(from + 6))
}

/** Salt and body of the record at `position`, as views of the block; zeros for an erased record. */
export function bodyAt(block: Buffer, position: number): { salt: Buffer; body: Buffer; erased: boolean } {
  const { from, to } = extentAt(block, position)
  const start = typeAtOf(block, from) + block.readUInt16LE(from + 6)
  return {
    salt: block.subarray(from + SALT_AT, from + FIXED_BYTES),
    body: block.subarray(start, to),
    erased: ((block[from + 4] ?? 0) & ERASED) !== 0,
  }
}

/**
 * The hash of the record at `position`, hex. The checksum is not checked, so that the hash index can open
 * although a record is damaged.
 */
export function hashAt(block: Uint8Array, position: number): string {
  const { from } = extentAt(block, position)
  return asBuffer(block).toString('hex', from + 26, from + 58)
}

/**
 * Destroys salt and body of the record at `position` in place. The block keeps its length, so that the store
 * overwrites all its bytes (docs/adr/0015-erasure.md). The caller must have checked the record.
 */
export function eraseAt(block: Buffer, position: number): void {
  const { from, to } = extentAt(block, position)
  const flags = block[from + 4] ?? 0
  const typeAt = typeAtOf(block, from)
  block[from + 4] = flags | ERASED
  block.fill(0, from + SALT_AT, from + FIXED_BYTES)
  block.fill(0, typeAt + block.readUInt16LE(from + 6), to)
  block.writeUInt32LE(crc32(block.subarray(from + 4, to)), from)
}

/**
 * Agent, seq, clock and body size (also if erased) of the record at `position`. The checksum is not checked.
 */
export function recordInfoAt(
  block: Uint8Array,
  position: number,
): { agentNo: number; seq: number; hlc: Hlc; bodyBytes: number } {
  const { from, to } = extentAt(block, position)
  const buffer = asBuffer(block)
  return {
    agentNo: buffer.readUInt32LE(from + 8),
    seq: buffer.readUIntLE(from + 12, 6),
    hlc: { ms: buffer.readUIntLE(from + 18, 6), counter: buffer.readUInt16LE(from + 24) },
    bodyBytes: to - typeAtOf(block, from) - buffer.readUInt16LE(from + 6),
  }
}

/**
 * The hash of the record at `position`, 32 bytes, which must be that of an agent at `seq`.
 * @throws Error if it is another record, or does not match its checksum
 */
export function leafAt(
  block: Buffer,
  position: number,
  { agentNo, seq }: Pick<StoredRecord, 'agentNo' | 'seq'>,
): Uint8Array {
  const { from, to } = extentAt(block, position)
  assert(crc32(block.subarray(from + 4, to)) === block.readUInt32LE(from), 'a record matches its checksum')
  const isExpected = block.readUInt32LE(from + 8) === agentNo && block.readUIntLE(from + 12, 6) === seq
  assert(isExpected, 'a strand run leads to its records')
  return Buffer.from(block.subarray(from + 26, from + 58))
}

/** Where the hash of a record is in its block, 32 bytes, and whose it is. */
export interface Leaf extends Pick<StoredRecord, 'agentNo' | 'seq'> {
  at: number
}

/** The record at `position` as a leaf of the tree of its strand. The checksum is not checked. */
export function leafOf(block: Buffer, position: number): Leaf {
  const from = block.readUInt32LE(2 + 4 * position)
  return { agentNo: block.readUInt32LE(from + 8), seq: block.readUIntLE(from + 12, 6), at: from + 26 }
}

/** The agent number of the record at `position`. The checksum is not checked. */
export function agentNoAt(block: Uint8Array, position: number): number {
  const buffer = asBuffer(block)
  return buffer.readUInt32LE(buffer.readUInt32LE(2 + 4 * position) + 8)
}

/** Whether all records of a block match their checksums. */
export function isWhole(block: Uint8Array): boolean {
  const buffer = asBuffer(block)
  for (let position = blockCount(block) - 1; position >= 0; position--) {
    const { from, to } = extentAt(block, position)
    if (to - from < FIXED_BYTES || to > buffer.length) return false
    if (crc32(buffer.subarray(from + 4, to)) !== buffer.readUInt32LE(from)) return false
  }
  return true
}

/** The time of the record at `position`, Unix milliseconds of its HLC. The checksum is not checked. */
export function hlcMsAt(block: Uint8Array, position: number): number {
  const { from } = extentAt(block, position)
  return asBuffer(block).readUIntLE(from + 18, 6)
}

/** Whether the record at `position` has this type. The checksum is not checked. */
export function hasTypeAt(block: Uint8Array, position: number, type: string): boolean {
  const { from } = extentAt(block, position)
  const buffer = asBuffer(block)
  if (buffer.readUInt16LE(from + 6) !== type.length) return false
  const typeAt = typeAtOf(block, from)
  return buffer.toString('latin1', typeAt, typeAt + type.length) === type
}

/** Whether the record at `position` is from an ingest route. The checksum is not checked. */
export function isIngestedAt(block: Uint8Array, position: number): boolean {
  const { from } = extentAt(block, position)
  return ((block[from + 4] ?? 0) & INGESTED) !== 0
}

/** An encoded record, with the fields that are needed to move it to another store. */
export interface RawRecord extends Pick<StoredRecord, 'agentNo' | 'seq' | 'hlc' | 'hash'> {
  /** A view of its block. */
  bytes: Buffer
  bodyBytes: number
}

/**
 * Reads the record at `position` as bytes, without a copy.
 * @throws Error if the checksum does not match: a damaged record is not moved
 */
export function rawRecordAt(block: Buffer, position: number): RawRecord {
  const { from, to } = extentAt(block, position)
  const bytes = block.subarray(from, to)
  assert(bytes.length >= FIXED_BYTES + SEALED_BY_BYTES, 'a stored record is whole')
  assert(crc32(bytes.subarray(4)) === bytes.readUInt32LE(0), 'a stored record matches its checksum')
  return {
    bytes,
    agentNo: bytes.readUInt32LE(8),
    seq: bytes.readUIntLE(12, 6),
    hlc: { ms: bytes.readUIntLE(18, 6), counter: bytes.readUInt16LE(24) },
    hash: bytes.toString('hex', 26, 58),
    bodyBytes: bytes.length - typeAtOf(bytes, 0) - bytes.readUInt16LE(6),
  }
}

/** Writes a record at `at` with another agent number. @returns the offset after it */
export function writeRenumbered(
  record: RawRecord,
  agentNo: number,
  { target, at }: { target: Buffer; at: number },
): number {
  const end = at + record.bytes.copy(target, at)
  target.writeUInt32LE(agentNo, at + 8)
  target.writeUInt32LE(crc32(target.subarray(at + 4, end)), at)
  return end
}

/** The value of a block from encoded records, which are adjacent in `bytes` and end at `ends`. */
export function blockOf(bytes: Uint8Array, ends: readonly number[]): Buffer {
  const overhead = blockOverhead(ends.length)
  const block = Buffer.allocUnsafe(overhead + bytes.length)
  block.writeUInt16LE(ends.length, 0)
  block.writeUInt32LE(overhead, 2)
  for (const [index, end] of ends.entries()) block.writeUInt32LE(overhead + end, 6 + 4 * index)
  block.set(bytes, overhead)
  return block
}

/** The offset of the type of the record at `from`. */
function typeAtOf(block: Uint8Array, from: number): number {
  const signed = ((block[from + 4] ?? 0) & SIGNED) !== 0
  return from + FIXED_BYTES + (signed ? SIGNATURE_BYTES : SEALED_BY_BYTES)
}

function extentAt(block: Uint8Array, position: number): { from: number; to: number } {
  const buffer = asBuffer(block)
  assert(position < buffer.readUInt16LE(0), 'the position is within the block')
  const from = buffer.readUInt32LE(2 + 4 * position)
  const to = buffer.readUInt32LE(6 + 4 * position)
  assert(from < to && to <= buffer.length, 'the offsets of a block are in order')
  return { from, to }
}
