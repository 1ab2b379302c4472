import type { Manifest, Trailer } from '../strand/strand-export.js'
import {
  ChainCheck,
  type ChainOptions,
  type ChainPlace,
  type ChainTally,
  type Erasure,
} from './chain-check.js'
import type { Check } from './job.js'
import type { ExaminedRecord, ReadLine, ReadRecord } from './record.js'
import { type Subtree, TreeHasher } from './tree.js'

/** How an export is checked, the same for each segment. */
export interface SegmentOptions extends ChainOptions {
  /** Sizes in ascending order for which the hash and root of the first `size` records are returned. */
  watch?: readonly number[]
}

/** The first `size` records of a strand, at a watched size. */
export interface WatchedSize {
  size: number
  /** Hash of the last of these records. */
  head: string
  /** Their tree, as far as it is within the segment. */
  subtrees: Subtree[]
}

/** The result of a segment: consecutive whole lines of an export, without its first line. */
export interface SegmentResult {
  /** Checked lines; the last one is invalid if there is a `fault` or `unreadable`. */
  lines: number
  /** The state of the chain after the segment. */
  place: ChainPlace
  tally: ChainTally
  /** Whether the trusted key has signed one of the records. */
  trusted: boolean
  /** The part of the tree in this segment; empty if the export does not begin at genesis. */
  subtrees: Subtree[]
  watched: WatchedSize[]
  /** Erasures that the records show or name, in their order. */
  erasures: Erasure[]
  trailer: Trailer | undefined
  fault: { seq?: number; reason: string } | undefined
  /** Why the last line cannot be read. */
  unreadable: string | undefined
  /**
   * If the state before the segment was assumed: the line of the first record, and the state after it. The
   * result is only valid if the actual state leads there too.
   */
  assumed?: { line: string; after: ChainPlace }
}

/** Checks the lines of a segment in their order, from a given state of the chain. */
export class SegmentCheck {
  readonly #chain: ChainCheck
  readonly #tree: TreeHasher | undefined
  readonly #watch: readonly number[]
  readonly #watched: WatchedSize[] = []
  readonly #erasures: Erasure[] = []
  #watchedNext: number
  #lines = 0
  #trailer: Trailer | undefined
  #fault: SegmentResult['fault']
  #unreadable: string | undefined

  /** @param begin the state before the segment, and the trailer if it precedes the segment */
  constructor(
    manifest: Manifest,
    { place, trailer }: { place: ChainPlace; trailer?: Trailer | undefined },
    options: SegmentOptions,
  ) {
    this.#trailer = trailer
    this.#chain = new ChainCheck(manifest, place, options)
    if (manifest.fromSeq === 0) this.#tree = new TreeHasher(place.seq)
    this.#watch = (options.watch ?? []).filter((size) => size > place.seq)
    this.#watchedNext = this.#watch[0] ?? 0
  }

  /** Valid records so far. */
  get records(): number {
    return this.#chain.tally.records
  }

  /** Whether a line was invalid. */
  get ended(): boolean {
    return this.#fault !== undefined || this.#unreadable !== undefined
  }

  /** The current state of the chain. */
  get place(): ChainPlace {
    return { ...this.#chain.place }
  }

  /** Runs the slow checks that `take` needs, for callers that run many of them in parallel. */
  examine(record: ReadRecord): Check<ExaminedRecord> {
    return this.#chain.examine(record)
  }

  /** Checks the next line. Must not be called after a fault. */
  *take(line: ReadLine, examined?: ExaminedRecord): Check<void> {
    this.#lines += 1
    const { seq } = this.#chain.place
    const isBlank = line !== undefined && 'blank' in line
    if (this.#trailer !== undefined) {
      if (!isBlank) this.#fault = { reason: 'A line follows the trailer' }
    } else if (line === undefined || isBlank) {
      this.#fault = { seq, reason: 'The line is neither a record nor the trailer' }
    } else if ('trailer' in line) this.#trailer = line.trailer
    else {
      const { record } = line
      const reason = this.#chain.take(record, examined ?? (yield* this.#chain.examine(record)))
      if (reason !== undefined) this.#fault = { seq, reason }
      else if (this.#tree === undefined) this.#collect()
      else {
        yield* this.#tree.join({ level: 0, rootHex: this.#chain.place.head ?? '' })
        this.#collect()
      }
    }
  }

  /** Marks the next line as unreadable. */
  refuse(reason: string): void {
    this.#lines += 1
    this.#unreadable = reason
  }

  result(): SegmentResult {
    return {
      lines: this.#lines,
      place: this.place,
      tally: this.#chain.tally,
      trusted: this.#chain.trusted,
      subtrees: this.#tree?.subtrees() ?? [],
      watched: this.#watched,
      erasures: this.#erasures,
      trailer: this.#trailer,
      fault: this.#fault,
      unreadable: this.#unreadable,
    }
  }

  /** Collects the erasure and the watched size at the last record. */
  #collect(): void {
    const { head = '', seq: size } = this.#chain.place
    if (this.#chain.erasure !== undefined) this.#erasures.push(this.#chain.erasure)
    if (size !== this.#watchedNext) return
    this.#watched.push({ size, head, subtrees: this.#tree?.subtrees() ?? [] })
    this.#watchedNext = this.#watch[this.#watched.length] ?? 0
  }
}
