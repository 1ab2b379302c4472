import { assert } from '../../../src/base/assert.js'
import { mayContain } from './filter.js'
import {
  CHUNK,
  ENTRY_BYTES,
  FENCES,
  FILTER,
  FILTER_LINE_BYTES,
  SEGMENT_BYTES,
  doubleAt,
  filterLines,
  getPart,
  partCount,
  partKey,
  type HashDatabase,
  type RunShape,
} from './format.js'

/** A published run. Its entries are in the database; its fences and filter are also in memory. */
export interface HashRun extends RunShape {
  /** The first prefix of each chunk. */
  fences: Float64Array
  /** A Bloom filter of 64-byte lines, 1.25 bytes for each entry. */
  filter: Uint32Array
}

/** Loads the fences and the filter of a published run. */
export function loadRun(db: HashDatabase, shape: RunShape, chunkEntries: number): HashRun {
  const fences = new Float64Array(partCount(CHUNK, shape, chunkEntries))
  const filter = new Uint32Array((filterLines(shape.entries) * FILTER_LINE_BYTES) / 4)
  loadSegments(db, { kind: FENCES, id: shape.id }, new Uint8Array(fences.buffer))
  loadSegments(db, { kind: FILTER, id: shape.id }, new Uint8Array(filter.buffer))
  return { id: shape.id, entries: shape.entries, fences, filter }
}

function loadSegments(db: HashDatabase, of: { kind: number; id: number }, target: Uint8Array): void {
  for (let part = 0; part * SEGMENT_BYTES < target.length; part += 1) {
    const segment = getPart(db, partKey(of.kind, of.id, part))
    assert(segment !== undefined, 'every segment of a published run is stored')
    const bytesLeft = target.length - part * SEGMENT_BYTES
    assert(segment.length === Math.min(SEGMENT_BYTES, bytesLeft), 'a segment has its length')
    target.set(segment, part * SEGMENT_BYTES)
  }
}

/**
 * Copies chunk `part` of a run into `pairs` (n prefixes, then n locations).
 * @returns n; 0 if the run has no such chunk
 */
export function readChunk(
  db: HashDatabase,
  { run, part }: { run: HashRun; part: number },
  pairs: Float64Array,
): number {
  if (part >= run.fences.length) return 0
  const chunk = getChunk(db, run, part)
  new Uint8Array(pairs.buffer).set(chunk)
  return chunk.length / ENTRY_BYTES
}

function getChunk(db: HashDatabase, run: HashRun, part: number): Buffer {
  const chunk = getPart(db, partKey(CHUNK, run.id, part))
  assert(chunk !== undefined && chunk.length > 0, 'every chunk of a published run is stored')
  assert(chunk.length % ENTRY_BYTES === 0, 'a chunk holds whole entries')
  return chunk
}

/** Appends the locations of `search.prefix` in this run to `search.found`, newest first. */
export function collectFromRun(
  search: { db: HashDatabase; prefix: number; found: number[] },
  run: HashRun,
): void {
  const { db, prefix, found } = search
  if (!mayContain(run.filter, prefix)) return
  // Equal prefixes can span chunks: read backwards from the last chunk that can hold one.
  let part = lastNotAbove(run.fences, prefix)
  while (part >= 0 && collectFromChunk(getChunk(db, run, part), prefix, found)) part -= 1
}

/** Appends the locations of the prefixes from `search.low` to `search.high` in this run to `search.found`. */
export function collectBetween(
  search: { db: HashDatabase; low: number; high: number; found: number[] },
  run: HashRun,
): void {
  const { db, low, high, found } = search
  // The chunk before the first fence that is not below `low` can end with prefixes of the range.
  let part = Math.max(0, lastNotAbove(run.fences, low - 1))
  for (; part < run.fences.length && doubleAt(run.fences, part) <= high; part += 1) {
    const chunk = getChunk(db, run, part)
    const entries = chunk.length / ENTRY_BYTES
    let at = entriesBefore(chunk, (index) => chunk.readDoubleLE(index * 8) < low)
    for (; at < entries && chunk.readDoubleLE(at * 8) <= high; at += 1)
      found.push(chunk.readDoubleLE((entries + at) * 8))
  }
}

/** Index of the last fence at or below `prefix`; -1 if there is none. */
function lastNotAbove(fences: Float64Array, prefix: number): number {
  let low = 0
  let high = fences.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (doubleAt(fences, middle) <= prefix) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** @returns whether the previous chunk may also contain `prefix` */
function collectFromChunk(chunk: Buffer, prefix: number, found: number[]): boolean {
  const entries = chunk.length / ENTRY_BYTES
  let at = entriesBefore(chunk, (index) => chunk.readDoubleLE(index * 8) <= prefix) - 1
  while (at >= 0 && chunk.readDoubleLE(at * 8) === prefix) {
    found.push(chunk.readDoubleLE((entries + at) * 8))
    at -= 1
  }
  return at < 0
}

/**
 * The greatest location of `search.prefix` in this run that is below `search.below`; `undefined` if there is
 * none. Locations of equal prefixes must rise.
 */
export function newestInRun(
  search: { db: HashDatabase; prefix: number; below: number },
  run: HashRun,
): number | undefined {
  const { db, prefix, below } = search
  if (!mayContain(run.filter, prefix)) return undefined
  // Find the last chunk that begins with a smaller prefix, or with the prefix and a location that is small
  // enough.
  let low = -1
  let high = lastNotAbove(run.fences, prefix)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (doubleAt(run.fences, middle) < prefix || firstLocation(getChunk(db, run, middle)) < below)
      low = middle
    else high = middle - 1
  }
  if (low < 0) return undefined
  const chunk = getChunk(db, run, low)
  const entries = chunk.length / ENTRY_BYTES
  const at = entriesBefore(chunk, (index) => {
    const stored = chunk.readDoubleLE(index * 8)
    return stored < prefix || (stored === prefix && chunk.readDoubleLE((entries + index) * 8) < below)
  })
  if (at === 0 || chunk.readDoubleLE((at - 1) * 8) !== prefix) return undefined
  return chunk.readDoubleLE((entries + at - 1) * 8)
}

function firstLocation(chunk: Buffer): number {
  return chunk.readDoubleLE(chunk.length / 2)
}

/** The number of entries that satisfy `isBefore`, which only the first entries of the chunk do. */
function entriesBefore(chunk: Buffer, isBefore: (index: number) => boolean): number {
  let low = 0
  let high = chunk.length / ENTRY_BYTES
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBefore(middle)) low = middle + 1
    else high = middle
  }
  return low
}
