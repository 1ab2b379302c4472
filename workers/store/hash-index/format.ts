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

/** The metadata record, which alone says which parts in the database count. */
export interface HashMetadata {
  version: 1
  /** Entries in a chunk; fixed when the index is made, because parts are counted by it. */
  chunkEntries: number
  /** The highest location that runs cover; -1 when there is none. */
  coveredUpTo: number
  /** The same of imported records; absent where there were none when it was written. */
  importedUpTo?: number
  nextRunId: number
  /** Published runs by level, oldest first within a level. */
  levels: RunShape[][]
  /** Outputs of unfinished merges; their parts are useless after a reopen. */
  unfinished: RunShape[]
  /** Runs whose parts are being deleted. */
  discarded: RunShape[]
}

/*
 * Keys, 9 bytes big-endian: kind u8, run id u32, part u32. Run ids are never used twice, so neither a late
 * delete nor the leftovers of a crash can touch the parts of another run.
 *   kind 0  metadata, run 0, part 0: JSON
 *   kind 1  a chunk of entries: n prefixes, then their n locations, float64 little-endian
 *   kind 2  a segment of the run's Bloom filter
 *   kind 3  a segment of the run's fences: the first prefix of each chunk, float64 little-endian
 * Every value ends in a crc32 over key and value: a damaged part would say of a record that it is not there.
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

/** A key of the database. The same bytes are used for the next key: lmdb copies them within the call. */
export function partKey(kind: number, runId: number, part: number): Buffer {
  keyScratch[0] = kind
  keyScratch.writeUInt32BE(runId, 1)
  keyScratch.writeUInt32BE(part, 5)
  return keyScratch
}

/** Writes a value with its checksum, into the transaction under way. */
export function putPart(db: HashDatabase, key: Buffer, value: Uint8Array): void {
  db.putSync(key, rowOf(key, value))
}

/**
 * A value, valid until the next read of the database; `undefined` when there is none. Its bytes need not be aligned.
 * @throws Error when its checksum does not hold
 */
export function getPart(db: HashDatabase, key: Buffer): Buffer | undefined {
  const part = db.getBinaryFast(key)
  if (part === undefined) return undefined
  // lmdb returns its whole read buffer with a smaller `length`, which native code ignores.
  const row = Buffer.from(part.buffer, part.byteOffset, part.length)
  assert(isWholeRow(key, row), 'a part of the hash index matches its checksum')
  return row.subarray(0, row.length - ROW_CHECKSUM_BYTES)
}

/** Reads the metadata; undefined when the index is new. */
export function readMetadata(db: HashDatabase): HashMetadata | undefined {
  const bytes = getPart(db, partKey(METADATA, 0, 0))
  if (bytes === undefined) return undefined
  const metadata = JSON.parse(bytes.toString('utf8')) as HashMetadata
  assert(metadata.version === 1, 'the hash index has format version 1')
  return metadata
}

/** Writes the metadata into the transaction under way. */
export function writeMetadata(db: HashDatabase, metadata: HashMetadata): void {
  putPart(db, partKey(METADATA, 0, 0), Buffer.from(JSON.stringify(metadata), 'utf8'))
}

/** An element of a list; the compiler of the engine knows that it is a number and leaves the assertion out. */
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

/** Bytes of a filter's line: one cache line, so that a probe of the filter is one miss of the cache. */
export const FILTER_LINE_BYTES = 64
const FILTER_BITS_PER_ENTRY = 10

/** Lines of the Bloom filter of a run. */
export function filterLines(entries: number): number {
  return Math.ceil((entries * FILTER_BITS_PER_ENTRY) / (FILTER_LINE_BYTES * 8))
}
