import { assert } from '../../../src/base/assert.js'
import {
  CHUNK,
  FENCES,
  FILTER,
  PREFIX_LIMIT,
  partCount,
  partKey,
  readMetadata,
  writeMetadata,
  type HashDatabase,
  type RunShape,
} from './format.js'
import { HashMemtable } from './memtable.js'
import { HashMerge } from './merge.js'
import { HashRunWriter } from './run-writer.js'
import { collectBetween, collectFromRun, loadRun, newestInRun, type HashRun } from './run.js'
import { importedBlocksFrom, isImportedBlock, packLocation, unpackLocation } from '../tables/tables.js'

/** Sizes of an index. The defaults suit a shard; tests use small ones. */
export interface HashIndexOptions {
  /** With this many entries in memory, a step writes them as a run. */
  memtableEntriesMax?: number
  /** Entries in memory, at most: those that the caller adds after `open`, and those between two steps. */
  entriesMax?: number
  /** Runs of one level that are merged into one of the next. */
  fanout?: number
  /** Entries that a step merges; more if that is needed to keep up with added entries. */
  mergeEntriesPerStep?: number
  /** Entries of a chunk; used when the index is created. An existing index keeps its stored number. */
  chunkEntries?: number
}

const defaults = {
  // A step takes a millisecond or two, in which no caller gets an answer.
  memtableEntriesMax: 4_096,
  mergeEntriesPerStep: 1_024,
  entriesMax: 32_768,
  fanout: 8,
  // 4,064 bytes: with checksum and page header just under a page of 4 KiB.
  chunkEntries: 254,
}

/** A level merges at least this many entries for each entry added: see the bound in `#publish`. */
const MERGE_RATE = 2
const LEVELS_MAX = 12
const PART_KINDS = [CHUNK, FILTER, FENCES]
const importedLocationsFrom = packLocation(importedBlocksFrom, 0)

/** A retired run, and the next of its parts to delete. */
interface DiscardedRun extends RunShape {
  kindIndex: number
  part: number
}

/**
 * Finds the locations of records by their hash. It is a log-structured merge index, because one random key
 * for each record would cost LMDB more than the rest of the write. New entries are held in memory and written
 * as sorted runs; each commit merges some entries of the runs of one level into a run of the next.
 *
 * `commitStep` does all writing, within the caller's transaction. If that transaction fails, the index must
 * be discarded and opened again. Entries in memory are not durable: after `open` the caller adds every
 * location above `coveredUpTo` again, and every imported one above `importedUpTo`.
 */
export class HashIndex {
  #db: HashDatabase
  #sizes: Required<HashIndexOptions>
  #memtable: HashMemtable
  #levels: HashRun[][] = []
  #merges: (HashMerge | undefined)[] = []
  #discarded: DiscardedRun[] = []
  #nextRunId = 0
  /** The highest locations in runs, and the last ones added; of the log and of imported records. */
  #covered = { log: -1, imported: -1 }
  #last = { log: -1, imported: -1 }
  #addedSinceStep = 0
  #metadataChanged = false

  /** Opens the index; an empty database is an empty index. Reads fences and filters, and writes nothing. */
  static open(db: HashDatabase, options: HashIndexOptions = {}): HashIndex {
    return new HashIndex(db, { ...defaults, ...options })
  }

  private constructor(db: HashDatabase, sizes: Required<HashIndexOptions>) {
    const metadata = readMetadata(db)
    this.#db = db
    this.#sizes = { ...sizes, chunkEntries: metadata?.chunkEntries ?? sizes.chunkEntries }
    assert(this.#sizes.fanout >= 2, 'a merge has at least two inputs')
    this.#memtable = new HashMemtable(this.#sizes.entriesMax)
    if (metadata === undefined) return
    this.#nextRunId = metadata.nextRunId
    this.#covered = { log: metadata.coveredUpTo, imported: metadata.importedUpTo ?? -1 }
    this.#last = { ...this.#covered }
    this.#levels = metadata.levels.map((runs) => {
      return runs.map((shape) => loadRun(db, shape, metadata.chunkEntries))
    })
    for (const shape of [...metadata.unfinished, ...metadata.discarded]) this.#discard(shape)
  }

  /** The highest location of the log that is durable in the index; -1 if there is none. */
  get coveredUpTo(): number {
    return this.#covered.log
  }

  /** The highest location of an imported record that is durable in the index; -1 if there is none. */
  get importedUpTo(): number {
    return this.#covered.imported
  }

  /** Whether a location is durable in the index. Other locations are added again when the store opens. */
  covers(location: number): boolean {
    const { blockNo } = unpackLocation(location)
    return location <= (isImportedBlock(blockNo) ? this.#covered.imported : this.#covered.log)
  }

  /** Whether `commitStep` has work although nothing was added. An idle shard calls it until this is false. */
  get needsStep(): boolean {
    if (this.#memtable.entries >= this.#sizes.memtableEntriesMax || this.#discarded.length > 0) return true
    return this.#levels.some((runs) => runs.length >= this.#sizes.fanout)
  }

  /**
   * Adds an entry. Locations must rise, separately for the log and for imported records. A step must follow
   * before `entriesMax` are in memory.
   */
  add(prefix: number, location: number): void {
    assert(prefix >= 0 && prefix < PREFIX_LIMIT, 'a prefix has 53 bits')
    const range = location < importedLocationsFrom ? 'log' : 'imported'
    assert(location > this.#last[range], 'locations rise')
    this.#memtable.add(prefix, location)
    this.#last[range] = location
    this.#addedSinceStep += 1
  }

  /** All locations added with `prefix`, newest first. The caller must compare the whole hash. */
  find(prefix: number): number[] {
    const found: number[] = []
    this.#memtable.collect(prefix, found)
    if (found.length > 1) found.reverse()
    // A lower level is newer than the ones above it, and within a level the last run is the newest.
    for (const runs of this.#levels) {
      for (let index = runs.length - 1; index >= 0; index -= 1) {
        const run = runs[index]
        if (run !== undefined) collectFromRun({ db: this.#db, prefix, found }, run)
      }
    }
    return found
  }

  /** All locations added with a prefix from `low` to `high`. The caller must compare the whole hash. */
  findBetween(low: number, high: number): number[] {
    const found: number[] = []
    this.#memtable.collectBetween(low, high, found)
    for (const run of this.#levels.flat()) collectBetween({ db: this.#db, low, high, found }, run)
    return found
  }

  /**
   * The greatest location below `below` that was added with `prefix`; `undefined` if there is none. The cost
   * does not depend on their number. The caller must compare the whole hash. Not for imported locations.
   */
  newestBelow(prefix: number, below: number): number | undefined {
    const inMemory: number[] = []
    this.#memtable.collect(prefix, inMemory)
    const newest = inMemory.findLast((location) => location < below)
    if (newest !== undefined) return newest
    for (const runs of this.#levels) {
      for (let index = runs.length - 1; index >= 0; index -= 1) {
        const run = runs[index]
        const found = run && newestInRun({ db: this.#db, prefix, below }, run)
        if (found !== undefined) return found
      }
    }
    return undefined
  }

  /**
   * Does the index's part of a commit: flushes a full memtable, merges some entries and deletes some parts.
   * Call it within the transaction, after the records of the added locations were put.
   */
  commitStep(): void {
    const added = this.#addedSinceStep
    this.#addedSinceStep = 0
    if (this.#memtable.entries >= this.#sizes.memtableEntriesMax) this.#flushMemtable()
    this.#startMerges()
    const moved = this.#advanceMerges(added)
    // Delete retired runs at least as fast as merges produce them.
    const partsMax = Math.ceil((moved * 2 + this.#sizes.mergeEntriesPerStep) / this.#sizes.chunkEntries)
    this.#deleteDiscarded(partsMax)
    if (this.#metadataChanged) this.#writeMetadata()
  }

  /**
   * Writes the entries in memory as a run, within the caller's transaction, so that the next `open` has none
   * to add again. Does nothing while runs await a merge, so that repeated openings do not accumulate runs.
   */
  flush(): void {
    const awaitsMerge = (this.#levels[0]?.length ?? 0) >= this.#sizes.fanout
    if (this.#memtable.entries > 0 && !awaitsMerge) this.#flushMemtable()
    if (this.#metadataChanged) this.#writeMetadata()
  }

  #flushMemtable(): void {
    const shape = { id: this.#nextId(), entries: this.#memtable.entries }
    const writer = new HashRunWriter(this.#db, shape, this.#sizes.chunkEntries)
    this.#memtable.visitSorted((prefix, location) => writer.append(prefix, location))
    this.#publish(0, writer.finish())
    this.#memtable.clear()
    this.#covered = { ...this.#last }
  }

  #startMerges(): void {
    for (const [level, runs] of this.#levels.entries()) {
      if (runs.length < this.#sizes.fanout || this.#merges[level] !== undefined) continue
      assert(level + 1 < LEVELS_MAX, 'the index has few levels')
      const output = { id: this.#nextId(), chunkEntries: this.#sizes.chunkEntries }
      this.#merges[level] = new HashMerge(this.#db, runs.slice(0, this.#sizes.fanout), output)
    }
  }

  /** @returns entries moved: at most `mergeEntriesPerStep`, plus MERGE_RATE times `added` for each level */
  #advanceMerges(added: number): number {
    let left = this.#sizes.mergeEntriesPerStep
    let movedTotal = 0
    for (const [level, merge] of this.#merges.entries()) {
      if (merge === undefined) continue
      const { moved, finished } = merge.step(Math.max(left, added * MERGE_RATE))
      left = Math.max(0, left - moved)
      movedTotal += moved
      if (finished !== undefined) this.#replaceInputs(level, merge, finished)
    }
    return movedTotal
  }

  /** Publishes a merge's output and retires its inputs, which are the oldest runs of their level. */
  #replaceInputs(level: number, merge: HashMerge, finished: HashRun): void {
    const retired = this.#levels[level]?.splice(0, merge.inputs.length) ?? []
    assert(
      retired.every((run, index) => run === merge.inputs[index]),
      'a merge retires the runs that it read',
    )
    this.#merges[level] = undefined
    for (const run of retired) this.#discard(run)
    this.#publish(level + 1, finished)
  }

  #publish(level: number, run: HashRun): void {
    const runs = (this.#levels[level] ??= [])
    runs.push(run)
    /*
     * This bound keeps lookups cheap. Runs of one level differ in size by less than a factor of two. A merge
     * of N entries ends before N / 2 more are added. These make at most `fanout` runs of this level, and
     * delayed merges of lower levels at most as many. With the inputs of the merge, that is three times the
     * fanout, and less than four while the inputs are runs of earlier versions, whose memtable was four times as
     * large: then twice the fanout of runs and a few delayed ones are made.
     */
    assert(runs.length <= this.#sizes.fanout * 4, 'merging keeps up with adding')
    this.#metadataChanged = true
  }

  #nextId(): number {
    this.#metadataChanged = true
    this.#nextRunId += 1
    return this.#nextRunId - 1
  }

  #discard(shape: RunShape): void {
    this.#discarded.push({ id: shape.id, entries: shape.entries, kindIndex: 0, part: 0 })
  }

  /**
   * Deletes up to `partsMax` parts. After a reopen it starts again at part 0, and deletes of missing parts do
   * nothing.
   */
  #deleteDiscarded(partsMax: number): void {
    for (let deleted = 0; deleted < partsMax;) {
      const run = this.#discarded[0]
      if (run === undefined) return
      const kind = PART_KINDS[run.kindIndex]
      if (kind === undefined) {
        this.#discarded.shift()
        this.#metadataChanged = true
      } else if (run.part < partCount(kind, run, this.#sizes.chunkEntries)) {
        this.#db.removeSync(partKey(kind, run.id, run.part))
        run.part += 1
        deleted += 1
      } else {
        run.kindIndex += 1
        run.part = 0
      }
    }
  }

  #writeMetadata(): void {
    writeMetadata(this.#db, {
      version: 1,
      chunkEntries: this.#sizes.chunkEntries,
      coveredUpTo: this.#covered.log,
      ...(this.#covered.imported >= 0 && { importedUpTo: this.#covered.imported }),
      nextRunId: this.#nextRunId,
      levels: this.#levels.map((runs) => runs.map(shapeOf)),
      unfinished: this.#merges.filter((merge) => merge !== undefined).map((merge) => merge.output),
      discarded: this.#discarded.map(shapeOf),
    })
    this.#metadataChanged = false
  }
}

/** The lowest and the highest sort key of the hashes that begin with `digits`. */
export function prefixRange(digits: string): [low: number, high: number] {
  return [prefixOf(digits.padEnd(PREFIX_DIGITS, '0')), prefixOf(digits.padEnd(PREFIX_DIGITS, 'f'))]
}

/** The hex digits from which the sort key is computed. */
const PREFIX_DIGITS = 14

/** The sort key of the index: the first 53 bits of a SHA-256, given as lower-case hex digits. */
export function prefixOf(hash: string): number {
  // Digit by digit, because `parseInt` on slices takes four times as long, and this runs once for each
  // record.
  let high = 0
  for (let at = 0; at < 7; at += 1) high = (high << 4) | digitAt(hash, at)
  let low = 0
  for (let at = 7; at < 14; at += 1) low = (low << 4) | digitAt(hash, at)
  // 28 bits, then the first 25 of the next 28.
  return high * 2 ** 25 + (low >>> 3)
}

/** The value of the hex digit at `at`: a letter's code has bit 6 set and counts from 1. */
function digitAt(hash: string, at: number): number {
  const code = hash.charCodeAt(at)
  return (code & 15) + (code >> 6) * 9
}

function shapeOf(shape: RunShape): RunShape {
  return { id: shape.id, entries: shape.entries }
}
