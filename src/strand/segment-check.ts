import { isUtf8 } from 'node:buffer'
import { assert } from '../base/assert.js'
import { ChainCheck, type ChainOptions, type ChainPlace, type ChainTally, placeFor } from './chain-check.js'
import { LineReader, type ReadLine } from './line-reader.js'
import { type Subtree, TreeHasher } from './merkle.js'
import type { Manifest, Trailer } from './strand-export.js'

/** How an export is checked, each segment alike. */
export interface SegmentOptions extends ChainOptions {
  /** Sizes, rising, of which hash and root are wanted: those of the strand's first `size` records. */
  watch?: readonly number[]
}

/** Some lines of an export, whole and in order, the first one of all not among them. */
export interface Segment {
  manifest: Manifest
  /** Lines, split at LF; what follows the last LF is a line if it is not empty. */
  bytes: Uint8Array
  /** Where the records before lead to; undefined where that is not known yet. */
  place: ChainPlace | undefined
  options: SegmentOptions
}

/** The strand as it was at one of the sizes that are watched. */
export interface WatchedSize {
  size: number
  /** Hash of the last of the `size` records. */
  head: string
  /** The segment's part of their tree. */
  subtrees: Subtree[]
}

/** What was found in a segment. */
export interface SegmentResult {
  /** Lines that were looked at; the last one is at fault where `fault` or `unreadable` is there. */
  lines: number
  /** Where the records lead to. */
  place: ChainPlace
  tally: ChainTally
  /** Whether the trusted key has signed one of the records. */
  trusted: boolean
  /** The segment's part of the tree; empty where the export does not begin at genesis. */
  subtrees: Subtree[]
  watched: WatchedSize[]
  trailer: Trailer | undefined
  fault: { seq?: number; reason: string } | undefined
  /** Why the last line cannot be read at all. */
  unreadable: string | undefined
  /**
   * Where the place was not known: the first record's line, and the place behind it. All of this result holds if the
   * records before lead there too, and says nothing otherwise.
   */
  assumed?: { line: string; after: ChainPlace }
}

/**
 * Checks a segment of an export. Where its place is not known, the first record is believed about it, so that segments
 * can be checked at once and joined afterwards (`ExportCheck`).
 * @returns undefined where the place is not known and the first line cannot stand in for it
 */
export function checkSegment({ manifest, bytes, place, options }: Segment): SegmentResult | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const readable = isUtf8(buffer)
  const reader = new LineReader()
  const firstEnd = lineEnd(buffer, 0)
  let begin = place
  if (begin === undefined) {
    const first = readable ? reader.read(buffer, 0, firstEnd) : undefined
    begin = first !== undefined && 'record' in first ? placeFor(first.record) : undefined
    if (begin === undefined) return undefined
  }
  const check = new SegmentCheck(manifest, begin, options)
  let after: ChainPlace | undefined
  let end = 0
  for (let start = 0; start < buffer.length; start = end + 1) {
    end = lineEnd(buffer, start)
    // A line that is cut out of UTF-8 at LF is UTF-8 itself.
    if (!readable && !isUtf8(buffer.subarray(start, end))) check.refuse('a line is not UTF-8')
    else check.take(reader.read(buffer, start, end))
    if (check.ended) break
    after ??= check.place
  }
  if (place !== undefined) return check.result()
  return after && { ...check.result(), assumed: { line: buffer.toString('utf8', 0, firstEnd), after } }
}

function lineEnd(buffer: Buffer, start: number): number {
  const lineFeed = buffer.indexOf(0x0a, start)
  return lineFeed === -1 ? buffer.length : lineFeed
}

/** Checks the lines of a segment as they come, from a place that is given. */
export class SegmentCheck {
  readonly #chain: ChainCheck
  readonly #tree: TreeHasher | undefined
  readonly #watch: readonly number[]
  readonly #watched: WatchedSize[] = []
  #watchedNext: number
  #lines = 0
  #trailer: Trailer | undefined
  #fault: SegmentResult['fault']
  #unreadable: string | undefined

  constructor(manifest: Manifest, place: ChainPlace, options: SegmentOptions) {
    this.#chain = new ChainCheck(manifest, place, options)
    if (manifest.fromSeq === 0) this.#tree = new TreeHasher(place.seq)
    this.#watch = (options.watch ?? []).filter((size) => size > place.seq)
    this.#watchedNext = this.#watch[0] ?? 0
  }

  /** Records that were found right. */
  get records(): number {
    return this.#chain.tally.records
  }

  /** Whether a line was at fault. */
  get ended(): boolean {
    return this.#fault !== undefined || this.#unreadable !== undefined
  }

  /** Where the chain stands. */
  get place(): ChainPlace {
    return { ...this.#chain.place }
  }

  /** Takes the next line. */
  take(line: ReadLine): void {
    assert(!this.ended, 'nothing is checked behind a fault')
    this.#lines += 1
    const { seq } = this.#chain.place
    if (this.#trailer !== undefined) this.#fault = { reason: 'A line follows the trailer' }
    else if (line === undefined) {
      this.#fault = { seq, reason: 'The line is neither a record nor the trailer' }
    } else if ('trailer' in line) this.#trailer = line.trailer
    else {
      const reason = this.#chain.take(line.record)
      if (reason === undefined) this.#keep()
      else this.#fault = { seq, reason }
    }
  }

  /** Refuses the next line, which cannot be read. */
  refuse(reason: string): void {
    this.#lines += 1
    this.#unreadable = reason
  }

  /** What was found. */
  result(): SegmentResult {
    return {
      lines: this.#lines,
      place: this.place,
      tally: this.#chain.tally,
      trusted: this.#chain.trusted,
      subtrees: this.#tree?.subtrees() ?? [],
      watched: this.#watched,
      trailer: this.#trailer,
      fault: this.#fault,
      unreadable: this.#unreadable,
    }
  }

  /** Keeps the hash of the record that was just taken. */
  #keep(): void {
    const { head, seq: size } = this.#chain.place
    assert(head !== undefined, 'a record that was taken has a hash')
    this.#tree?.join({ level: 0, rootHex: head })
    if (size !== this.#watchedNext) return
    this.#watched.push({ size, head, subtrees: this.#tree?.subtrees() ?? [] })
    this.#watchedNext = this.#watch[this.#watched.length] ?? 0
  }
}
