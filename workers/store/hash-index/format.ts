import type { Database } from 'lmdb'
import { assert } from '../../../src/base/assert.js'
import { ROW_CHECKSUM_BYTES, isWholeRow, rowOf } from '../../../src/store-files/row-checksum.js'

/** The named database that holds the index: binary keys and values. */
export type HashDatabase = Database<Buffer, Buffer>

/** Id and size of one sorted run. */
export interface RunShape {
  id: number
  entries: number
}

/** The metadata record. Only the runs that it lists are part of the index. */
export interface HashMetadata {
  version: 1
  /** Entries in a chunk; fixed when the index is created, because part numbers depend on it. */
  chunkEntries: number
  /** The highest location in the runs; -1 if there is none. */
  coveredUpTo: number
  /** The same for imported records; absent if there were none. */
  importedUpTo?: number
  nextRunId: number
  /** Published runs by level, oldest first within a level. */
  levels: RunShape[][]
  /** Outputs of unfinished merges; deleted after a reopen. */
  unfinished: RunShape[]
  /** Runs whose parts are being deleted. */
  discarded: RunShape[]
}

/*
 * Keys, 9 bytes big-endian: kind u8, run id u32, part u32. Run ids are never reused, so neither a late delete
 * nor parts left by a crash can affect another run.
 *   kind 0  metadata, run 0, part 0: JSON
 *   kind 1  a chunk of entries: n prefixes, then their n locations, float64 little-endian
 *   kind 2  a segment of the run's Bloom filter
 *   kind 3  a segment of the run's fences: the first prefix of each chunk, float64 little-endian
 * Every value ends in a crc32 over key and value, because a damaged part could hide a record.
 */
const METADATA = 0
/** Kind of a key that holds entries. */
export const CHUNK = 1
/** Kind of a key that holds a segment of the Bloom filter. */
export const FILTER = 2
/** Kind of a key that holds a segment of fences. */
export const FENCES = 3

const KEY_BYTES = 9
/** Bytes of a prefix and a location. */
export const ENTRY_BYTES = 16
/** Bytes of one segment of filter or fences: under four pages with their header and checksum. */
export const SEGMENT_BYTES = 16_320
/** Prefixes are below this: the most bits of a hash that a JS number holds exactly. */
export const PREFIX_LIMIT = 2 ** 53

const keyScratch = Buffer.alloc(KEY_BYTES)

/** A key of the database. The buffer is reused for the next key: lmdb copies the key within its call. */
export function partKey(kind: number, runId: number, part: number): Buffer {
  keyScratch[0] = kind
  keyScratch.writeUInt32BE(runId, 1)
  keyScratch.writeUInt32BE(part, 5)
  return keyScratch
}

/** Writes a value with its checksum, within the caller's transaction. */
export function putPart(db: HashDatabase, key: Buffer, value: Uint8Array): void {
  db.putSync(key, rowOf(key, value))
}

/**
 * A value, valid until the next read of the database; `undefined` if there is none. The bytes may be
 * unaligned.
 * @throws Error if the checksum does not match
 */
export function getPart(db: HashDatabase, key: Buffer): Buffer | undefined {
  const part = db.getBinaryFast(key)
  if (part === undefined) return undefined
  // lmdb returns its whole read buffer with a smaller `length`, which native code ignores.
  const row = Buffer.from(part.buffer, part.byteOffset, part.length)
  assert(isWholeRow(key, row), 'a part of the hash index matches its checksum')
  return row.subarray(0, row.length - ROW_CHECKSUM_BYTES)
}

/** Reads the metadata; undefined if the index is new. */
export function readMetadata(db: HashDatabase): HashMetadata | undefined {
  const bytes = getPart(db, partKey(METADATA, 0, 0))
  if (bytes === undefined) return undefined
  const metadata = JSON.parse(bytes.toString('utf8')) as HashMetadata
  assert(metadata.version === 1, 'the hash index has format version 1')
  return metadata
}

/** Writes the metadata, within the caller's transaction. */
export function writeMetadata(db: HashDatabase, metadata: HashMetadata): void {
  putPart(db, partKey(METADATA, 0, 0), Buffer.from(JSON.stringify(metadata), 'utf8'))
}

/** An element of a list. The JIT compiler knows that it is a number and removes the assertion. */
export function doubleAt(list: Float64Array, index: number): number {
  const value = list[index]
  assert(value !== undefined, 'the index is within the list')
  return value
}

/** Parts of one kind that a run of `shape` has. */
export function partCount(kind: number, shape: RunShape, chunkEntries: number): number {
  const chunks = Math.ceil(shape.entries / chunkEntries)
  if (kind === CHUNK) return chunks
  const bytes = kind === FILTER ? filterLines(shape.entries) * FILTER_LINE_BYTES : chunks * 8
  return Math.ceil(bytes / SEGMENT_BYTES)
}

/** Bytes of a filter line: one cache line, so that a probe causes one cache miss. */
export const FILTER_LINE_BYTES = 64
const FILTER_BITS_PER_ENTRY = 10

/** Lines of the Bloom filter of a run. */
export function filterLines(entries: number): number {
  return Math.ceil((entries * FILTER_BITS_PER_ENTRY) / (FILTER_LINE_BYTES * 8))
}
