import { assert } from '../../../src/base/assert.js'
import { addToFilter, filterLine } from './filter.js'
import {
  CHUNK,
  FENCES,
  FILTER,
  FILTER_LINE_BYTES,
  SEGMENT_BYTES,
  filterLines,
  partCount,
  partKey,
  putPart,
  type HashDatabase,
  type RunShape,
} from './format.js'
import type { HashRun } from './run.js'

const SEGMENT_LINES = SEGMENT_BYTES / FILTER_LINE_BYTES

/**
 * Writes one run, entry by entry in order, over any number of transactions. The run is part of the index only
 * once the caller publishes it in the metadata.
 */
export class HashRunWriter {
  readonly shape: RunShape
  #db: HashDatabase
  #chunkEntries: number
  /** Prefixes in the first half, locations in the second. */
  #chunk: Float64Array
  #inChunk = 0
  #written = 0
  #lastPrefix = -1
  #fences: Float64Array
  #filter: Uint32Array
  #filterLines: number
  #filterSegmentsWritten = 0

  constructor(db: HashDatabase, shape: RunShape, chunkEntries: number) {
    assert(shape.entries > 0, 'a run has entries')
    this.shape = shape
    this.#db = db
    this.#chunkEntries = chunkEntries
    this.#chunk = new Float64Array(chunkEntries * 2)
    this.#fences = new Float64Array(partCount(CHUNK, shape, chunkEntries))
    this.#filterLines = filterLines(shape.entries)
    this.#filter = new Uint32Array((this.#filterLines * FILTER_LINE_BYTES) / 4)
  }

  /** Adds the next entry; prefixes must not fall. */
  append(prefix: number, location: number): void {
    assert(prefix >= this.#lastPrefix, 'a run is sorted by prefix')
    this.#lastPrefix = prefix
    if (this.#inChunk === 0) this.#fences[this.#written / this.#chunkEntries] = prefix
    this.#chunk[this.#inChunk] = prefix
    this.#chunk[this.#chunkEntries + this.#inChunk] = location
    this.#inChunk += 1
    addToFilter(this.#filter, prefix)
    if (this.#inChunk === this.#chunkEntries) this.#writeChunk()
  }

  /** Writes the rest. All entries of the shape must have been appended. */
  finish(): HashRun {
    if (this.#inChunk > 0) this.#writeChunk()
    assert(this.#written === this.shape.entries, 'a run has as many entries as announced')
    this.#writeFilterUpTo(partCount(FILTER, this.shape, this.#chunkEntries))
    const fenceBytes = Buffer.from(this.#fences.buffer)
    for (let part = 0; part * SEGMENT_BYTES < fenceBytes.length; part += 1) {
      putPart(this.#db, partKey(FENCES, this.shape.id, part), segmentOf(fenceBytes, part))
    }
    return { ...this.shape, fences: this.#fences, filter: this.#filter }
  }

  #writeChunk(): void {
    const entries = this.#inChunk
    // In a last chunk that is not full, the locations move up behind the prefixes.
    this.#chunk.copyWithin(entries, this.#chunkEntries, this.#chunkEntries + entries)
    const bytes = Buffer.from(this.#chunk.buffer, 0, entries * 16)
    putPart(this.#db, partKey(CHUNK, this.shape.id, Math.floor(this.#written / this.#chunkEntries)), bytes)
    this.#written += entries
    this.#inChunk = 0
    this.#writeFilterUpTo(Math.floor(filterLine(this.#lastPrefix, this.#filterLines) / SEGMENT_LINES))
  }

  /** Writes the segments before `end`, which later prefixes do not change. */
  #writeFilterUpTo(end: number): void {
    const bytes = Buffer.from(this.#filter.buffer)
    for (; this.#filterSegmentsWritten < end; this.#filterSegmentsWritten += 1) {
      const part = this.#filterSegmentsWritten
      putPart(this.#db, partKey(FILTER, this.shape.id, part), segmentOf(bytes, part))
    }
  }
}

function segmentOf(bytes: Buffer, part: number): Buffer {
  return bytes.subarray(part * SEGMENT_BYTES, (part + 1) * SEGMENT_BYTES)
}
