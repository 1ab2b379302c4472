import { assert } from '../../../src/base/assert.js'
import { doubleAt, type HashDatabase, type RunShape } from './format.js'
import { readChunk, type HashRun } from './run.js'
import { HashRunWriter } from './run-writer.js'

interface Cursor {
  run: HashRun
  part: number
  /** Number of entries in `pairs`. */
  entries: number
  at: number
  /** The chunk under the cursor: its prefixes, then its locations. */
  pairs: Float64Array
}

/** A merge of sorted runs into one, done in steps. The inputs do not change. */
export class HashMerge {
  readonly inputs: readonly HashRun[]
  #db: HashDatabase
  #writer: HashRunWriter
  #cursors: Cursor[]
  /** The prefix under each cursor; Infinity if its run is exhausted. */
  #heads: Float64Array

  /** @param inputs oldest first, so that equal prefixes stay in insertion order */
  constructor(db: HashDatabase, inputs: readonly HashRun[], output: { id: number; chunkEntries: number }) {
    const entries = inputs.reduce((sum, run) => sum + run.entries, 0)
    this.inputs = inputs
    this.#db = db
    this.#writer = new HashRunWriter(db, { id: output.id, entries }, output.chunkEntries)
    this.#heads = new Float64Array(inputs.length)
    this.#cursors = inputs.map((run) => {
      return { run, part: -1, entries: 0, at: 0, pairs: new Float64Array(output.chunkEntries * 2) }
    })
    for (const [index, cursor] of this.#cursors.entries()) this.#nextChunk(index, cursor)
  }

  get output(): RunShape {
    return this.#writer.shape
  }

  /**
   * Moves up to `entriesMax` entries.
   * @returns the number of entries moved, and the output once it is complete
   */
  step(entriesMax: number): { moved: number; finished?: HashRun } {
    let moved = 0
    while (moved < entriesMax) {
      const index = this.#smallest()
      const prefix = doubleAt(this.#heads, index)
      if (prefix === Infinity) return { moved, finished: this.#writer.finish() }
      this.#move(index, prefix)
      moved += 1
    }
    return { moved }
  }

  /**
   * The first of the smallest heads, so the oldest run wins a tie. For few inputs a scan is faster than a
   * heap.
   */
  #smallest(): number {
    const heads = this.#heads
    let smallest = 0
    let smallestPrefix = doubleAt(heads, 0)
    for (let index = 1; index < heads.length; index += 1) {
      const prefix = doubleAt(heads, index)
      if (prefix < smallestPrefix) {
        smallest = index
        smallestPrefix = prefix
      }
    }
    return smallest
  }

  #move(index: number, prefix: number): void {
    const cursor = this.#cursors[index]
    assert(cursor !== undefined, 'every head has a cursor')
    this.#writer.append(prefix, doubleAt(cursor.pairs, cursor.entries + cursor.at))
    cursor.at += 1
    if (cursor.at === cursor.entries) this.#nextChunk(index, cursor)
    else this.#heads[index] = doubleAt(cursor.pairs, cursor.at)
  }

  #nextChunk(index: number, cursor: Cursor): void {
    cursor.part += 1
    cursor.at = 0
    cursor.entries = readChunk(this.#db, cursor, cursor.pairs)
    this.#heads[index] = cursor.entries === 0 ? Infinity : doubleAt(cursor.pairs, 0)
  }
}
