import { hash } from 'node:crypto'

/*
 * The format of a segment in a file of the log (docs/adr/0041-one-log.md):
 *
 *   0   SHA-256 over the rest, to the end of the content
 *   32  "SFL1", kind u8, three zeros
 *   40  length of the content u32, four zeros
 *   48  number, u64
 *   56  number of the last segment that was durable when this one was written, u64
 *   64  hash of the previous segment
 *   96  content, and zeros up to the next multiple of 512
 */

/** The content of a segment: `group` has changes of rows, `next` the number of the next file. */
export type SegmentKind = 'group' | 'next'

/** The content of a new segment. It is encoded directly into the segment, because it may be many MiB. */
export interface SegmentContent {
  bytes: number
  /** @param into has `bytes` bytes */
  write(into: Buffer): void
}

export interface SegmentId {
  number: number
  /** 32 bytes. */
  hash: Buffer
}

export interface Segment extends SegmentId {
  kind: SegmentKind
  /** The last segment that was durable when this one was written. */
  durable: number
  prev: Buffer
  content: Buffer
  /** Bytes that the segment takes in the file. */
  bytes: number
}

/** Segments begin at multiples of this, which a disk writes atomically, bytes. */
export const SECTOR_BYTES = 512

const HASH_BYTES = 32
const HEADER_BYTES = 96
const MAGIC = 0x53_46_4c_31
const MAGIC_AT = 32
const KIND_AT = 36
const LENGTH_AT = 40
const NUMBER_AT = 48
const DURABLE_AT = 56
const PREV_AT = 64
const kinds: readonly (SegmentKind | undefined)[] = [undefined, 'group', 'next']

/** Bytes that a segment with so much content takes in a file. */
export function segmentBytes(contentBytes: number): number {
  return Math.ceil((HEADER_BYTES + contentBytes) / SECTOR_BYTES) * SECTOR_BYTES
}

/** Content that is already encoded. */
export function contentOf(bytes: Buffer): SegmentContent {
  return { bytes: bytes.length, write: (into) => into.set(bytes) }
}

/**
 * Encodes the segment after `before`.
 * @param memory for the segment, at least as long; new memory if absent
 */
export function encodeSegment(
  before: SegmentId,
  { kind, content, durable }: Pick<Segment, 'kind' | 'durable'> & { content: SegmentContent },
  memory?: Buffer,
): { place: SegmentId; bytes: Buffer } {
  const length = segmentBytes(content.bytes)
  const bytes = memory?.subarray(0, length) ?? Buffer.allocUnsafe(length)
  const end = HEADER_BYTES + content.bytes
  bytes.fill(0, MAGIC_AT, HEADER_BYTES)
  bytes.fill(0, end)
  const number = before.number + 1
  bytes.writeUInt32BE(MAGIC, MAGIC_AT)
  bytes[KIND_AT] = kinds.indexOf(kind)
  bytes.writeUInt32BE(content.bytes, LENGTH_AT)
  bytes.writeUIntBE(number, NUMBER_AT + 2, 6)
  bytes.writeUIntBE(durable, DURABLE_AT + 2, 6)
  bytes.set(before.hash, PREV_AT)
  content.write(bytes.subarray(HEADER_BYTES, end))
  const digest = hash('sha256', bytes.subarray(HASH_BYTES, end), 'buffer')
  bytes.set(digest, 0)
  return { place: { number, hash: digest }, bytes }
}

/** The segment at an offset of a file's content; `undefined` if there is no complete one. */
export function decodeSegment(file: Buffer, at: number): Segment | undefined {
  if (at + HEADER_BYTES > file.length || file.readUInt32BE(at + MAGIC_AT) !== MAGIC) return undefined
  const kind = kinds[file[at + KIND_AT] ?? 0]
  const end = at + HEADER_BYTES + file.readUInt32BE(at + LENGTH_AT)
  if (kind === undefined || end > file.length) return undefined
  const digest = file.subarray(at, at + HASH_BYTES)
  if (!hash('sha256', file.subarray(at + HASH_BYTES, end), 'buffer').equals(digest)) return undefined
  return {
    kind,
    number: file.readUIntBE(at + NUMBER_AT + 2, 6),
    durable: file.readUIntBE(at + DURABLE_AT + 2, 6),
    hash: Buffer.from(digest),
    prev: file.subarray(at + PREV_AT, at + HEADER_BYTES),
    content: file.subarray(at + HEADER_BYTES, end),
    bytes: segmentBytes(end - at - HEADER_BYTES),
  }
}
