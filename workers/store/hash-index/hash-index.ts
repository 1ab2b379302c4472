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
import { collectFromRun, loadRun, newestInRun, type HashRun } from './run.js'
import { importedBlocksFrom, isImportedBlock, packLocation, unpackLocation } from '../tables/tables.js'

/** Sizes of an index; the defaults fit a shard, tests make them small. */
export interface HashIndexOptions {
  /** Entries in memory at which a step writes them as a run. */
  memtableEntriesMax?: number
  /** Runs of one level that are merged into one of the next. */
  fanout?: number
  /** Entries that a step merges, unless keeping up with what was added needs more. */
  mergeEntriesPerStep?: number
  /** Entries of a chunk; used when the index is made, later the stored number holds. */
  chunkEntries?: number
}

const defaults = {
  memtableEntriesMax: 16_384,
  fanout: 8,
  mergeEntriesPerStep: 8_192,
  // 4,064 bytes: with checksum and page header just under a page of 4 KiB, where one entry more would take two.
  chunkEntries: 254,
}

/** A level moves at least this many entries for each one added: see the bound in `#publish`. */
const MERGE_RATE = 2
const LEVELS_MAX = 12
const PART_KINDS = [CHUNK, FILTER, FENCES]
const importedLocationsFrom = packLocation(importedBlocksFrom, 0)

/** Parts of a run that is gone, on their way out of the database. */
interface Discarded extends RunShape {
  kindIndex: number
  part: number
}

/**
 * Finds the locations of records by their hash: a log-structured merge index, because one random key for each record
 * would cost LMDB more than all the rest of a write. Entries gather in memory, are written as sorted runs, and runs of
 * one level are merged into one of the next a little at each commit.
 *
 * All writing happens in `commitStep`, inside the transaction of the caller. When that transaction fails the index must
 * be thrown away and opened again. Entries in memory are not durable: after `open` the caller adds again every location
 * above `coveredUpTo`, and every imported one above `importedUpTo`.
 */
export class HashIndex {
  #db: HashDatabase
  #sizes: Required<HashIndexOptions>
  #memtable: HashMemtable
  #levels: HashRun[][] = []
  #merges: (HashMerge | undefined)[] = []
  #discarded: Discarded[] = []
  #nextRunId = 0
  /** Highest locations, of the log and of imported records: those that runs cover, and the last ones added. */
  #covered = { log: -1, imported: -1 }
  #last = { log: -1, imported: -1 }
  #addedSinceStep = 0
  #metadataChanged = false

  /** Opens the index, or makes it when the database is empty. Reads fences and filters; writes nothing. */
  static open(db: HashDatabase, options: HashIndexOptions = {}): HashIndex {
    return new HashIndex(db, { ...defaults, ...options })
  }

  private constructor(db: HashDatabase, sizes: Required<HashIndexOptions>) {
    const metadata = readMetadata(db)
    this.#db = db
    this.#sizes = { ...sizes, chunkEntries: metadata?.chunkEntries ?? sizes.chunkEntries }
    assert(this.#sizes.fanout >= 2, 'a merge has at least two inputs')
    // Twice the mark: the caller's commit group is at most as large as the memtable.
    this.#memtable = new HashMemtable(this.#sizes.memtableEntriesMax * 2)
    if (metadata === undefined) return
    this.#nextRunId = metadata.nextRunId
    this.#covered = { log: metadata.coveredUpTo, imported: metadata.importedUpTo ?? -1 }
    this.#last = { ...this.#covered }
    this.#levels = metadata.levels.map((runs) => {
      return runs.map((shape) => loadRun(db, shape, metadata.chunkEntries))
    })
    for (const shape of [...metadata.unfinished, ...metadata.discarded]) this.#discard(shape)
  }

  /** The highest location of the log that is durable in the index; -1 when there is none. */
  get coveredUpTo(): number {
    return this.#covered.log
  }

  /** The highest location of an imported record that is durable in the index; -1 when there is none. */
  get importedUpTo(): number {
    return this.#covered.imported
  }

  /** Whether a location is durable in the index; what is not is added again when the store opens. */
  covers(location: number): boolean {
    const { blockNo } = unpackLocation(location)
    return location <= (isImportedBlock(blockNo) ? this.#covered.imported : this.#covered.log)
  }

  /** Whether `commitStep` has work even if nothing is added: an idle shard calls it until this is false. */
  get needsStep(): boolean {
    if (this.#memtable.entries >= this.#sizes.memtableEntriesMax || this.#discarded.length > 0) return true
    return this.#levels.some((runs) => runs.length >= this.#sizes.fanout)
  }

  /**
   * Adds an entry. Locations rise, those of the log and imported ones each by themselves; between two steps at most
   * `memtableEntriesMax` entries are added.
   */
  add(prefix: number, location: number): void {
    assert(prefix >= 0 && prefix < PREFIX_LIMIT, 'a prefix has 53 bits')
    const range = location < importedLocationsFrom ? 'log' : 'imported'
    assert(location > this.#last[range], 'locations rise')
    this.#memtable.add(prefix, location)
    this.#last[range] = location
    this.#addedSinceStep += 1
  }

  /** Every location added with `prefix`, newest first. The caller compares the whole hash. */
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

  /**
   * The greatest location below `below` that was added with `prefix`; `undefined` when there is none. It costs the same
   * however many there are. The caller compares the whole hash. Imported locations are not looked for.
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
   * Does the index's share of a commit: flushes a full memtable, merges a little, deletes a little. Call it
   * inside the transaction, after the puts that the added locations point at.
   */
  commitStep(): void {
    const added = this.#addedSinceStep
    this.#addedSinceStep = 0
    if (this.#memtable.entries >= this.#sizes.memtableEntriesMax) this.#flush()
    this.#startMerges()
    const moved = this.#advanceMerges(added)
    // Retired runs are deleted at least as fast as merges produce them.
    const partsMax = Math.ceil((moved * 2 + this.#sizes.mergeEntriesPerStep) / this.#sizes.chunkEntries)
    this.#deleteDiscarded(partsMax)
    if (this.#metadataChanged) this.#writeMetadata()
  }

  /**
   * Makes a run of the newest part, within the caller's transaction, so that the next opening has nothing to add again.
   * Not while runs wait for a merge: repeated openings must not pile them up.
   */
  settle(): void {
    const waiting = (this.#levels[0]?.length ?? 0) >= this.#sizes.fanout
    if (this.#memtable.entries > 0 && !waiting) this.#flush()
    if (this.#metadataChanged) this.#writeMetadata()
  }

  #flush(): void {
    const shape = { id: this.#takeRunId(), entries: this.#memtable.entries }
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
      const output = { id: this.#takeRunId(), chunkEntries: this.#sizes.chunkEntries }
      this.#merges[level] = new HashMerge(this.#db, runs.slice(0, this.#sizes.fanout), output)
    }
  }

  /** @returns entries moved: at most `mergeEntriesPerStep`, and MERGE_RATE times `added` a level beyond it */
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
     * The bound that keeps lookups cheap. Runs of one level differ in size by less than two. A merge of N
     * entries ends before N / 2 more are added; these make at most `fanout` runs of this level, and what the
     * levels below held back at most as many again. With its own inputs that is three times the fanout.
     */
    assert(runs.length <= this.#sizes.fanout * 4, 'merging keeps up with adding')
    this.#metadataChanged = true
  }

  #takeRunId(): number {
    this.#metadataChanged = true
    this.#nextRunId += 1
    return this.#nextRunId - 1
  }

  #discard(shape: RunShape): void {
    this.#discarded.push({ id: shape.id, entries: shape.entries, kindIndex: 0, part: 0 })
  }

  /** Deletes up to `partsMax` parts. After a reopen it starts a run anew: deleting what is gone is harmless. */
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

/** The first 53 bits of a SHA-256 given as lower-case hex digits: the number that the index sorts by. */
export function prefixOf(hash: string): number {
  // Digit by digit: `parseInt` on slices takes four times as long, and this runs once a record.
  let high = 0
  for (let at = 0; at < 7; at += 1) high = (high << 4) | digitAt(hash, at)
  let low = 0
  for (let at = 7; at < 14; at += 1) low = (low << 4) | digitAt(hash, at)
  // 28 bits, then 28 of which the last three are dropped.
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
