import { hash } from 'node:crypto'

/*
 * A segment as it lies in a file of the log (docs/adr/0041-one-log.md):
 *
 *   0   SHA-256 over all that follows, to the end of the content
 *   32  "SFL1", kind u8, three zeros
 *   40  length of the content u32, four zeros
 *   48  number, u64
 *   56  number of the last segment that was durable when this one was written, u64
 *   64  hash of the segment before
 *   96  content, and zeros up to the next multiple of 512
 */

/** What the content of a segment is: changes of rows, or the number of the file in which the log goes on. */
export type SegmentKind = 'group' | 'next'

/** What a segment is to hold. It is written where the segment is laid out: it may be many MiB, and copies take time. */
export interface SegmentContent {
  bytes: number
  /** @param into has that length */
  write(into: Buffer): void
}

/** Where a segment ends: its number, and its hash, 32 bytes. */
export interface SegmentPlace {
  number: number
  hash: Buffer
}

/** A segment that was read. */
export interface Segment extends SegmentPlace {
  kind: SegmentKind
  /** The last segment that was durable when this one was written. */
  durable: number
  prev: Buffer
  content: Buffer
  /** Bytes that it takes in the file. */
  bytes: number
}

/** Segments begin at multiples of this: what a disk writes whole or not at all, bytes. */
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

/** The content that is there as bytes. */
export function contentOf(bytes: Buffer): SegmentContent {
  return { bytes: bytes.length, write: (into) => into.set(bytes) }
}

/**
 * Lays a segment out after the one at `before`.
 * @param memory where it is laid out, if it must lie in a certain place; as long as the segment at least
 */
export function encodeSegment(
  before: SegmentPlace,
  { kind, content, durable }: Pick<Segment, 'kind' | 'durable'> & { content: SegmentContent },
  memory?: Buffer,
): { place: SegmentPlace; bytes: Buffer } {
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

/** The segment at a place of a file's content; `undefined` where there is none that is whole. */
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
