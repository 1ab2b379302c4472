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
  /** Sizes in rising order for which the hash and root of the strand's first `size` records are wanted. */
  watch?: readonly number[]
}

/** The strand as it was at one of the sizes that are watched. */
export interface WatchedSize {
  size: number
  /** Hash of the last of the `size` records. */
  head: string
  /** The segment's part of their tree. */
  subtrees: Subtree[]
}

/** The result of a segment: some whole lines of an export, in order, without the export's first line. */
export interface SegmentResult {
  /** Lines that were checked; the last one is at fault if there is a `fault` or `unreadable`. */
  lines: number
  /** Where the records lead to. */
  place: ChainPlace
  tally: ChainTally
  /** Whether the trusted key has signed one of the records. */
  trusted: boolean
  /** The segment's part of the tree; empty where the export does not begin at genesis. */
  subtrees: Subtree[]
  watched: WatchedSize[]
  /** What its records say about bodies that are gone, in their order. */
  erasures: Erasure[]
  trailer: Trailer | undefined
  fault: { seq?: number; reason: string } | undefined
  /** Why the last line cannot be read at all. */
  unreadable: string | undefined
  /**
   * If the place was not known: the first record's line, and the place after it. This result holds if the records
   * before lead there too, and means nothing otherwise.
   */
  assumed?: { line: string; after: ChainPlace }
}

/** Checks the lines of a segment as they come, from a place that is given. */
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

  /** @param begin where the records before lead to, and the trailer where it has come already */
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

  /** Records that were found valid. */
  get records(): number {
    return this.#chain.tally.records
  }

  /** Whether a line was at fault. */
  get ended(): boolean {
    return this.#fault !== undefined || this.#unreadable !== undefined
  }

  /** The current place in the chain. */
  get place(): ChainPlace {
    return { ...this.#chain.place }
  }

  /** Computes what `take` needs of a record, for callers that do so for many at once. */
  examine(record: ReadRecord): Check<ExaminedRecord> {
    return this.#chain.examine(record)
  }

  /** Takes the next line; nothing is checked after a fault. */
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
      else if (this.#tree === undefined) this.#keep()
      else {
        yield* this.#tree.join({ level: 0, rootHex: this.#chain.place.head ?? '' })
        this.#keep()
      }
    }
  }

  /** Refuses the next line, which cannot be read. */
  refuse(reason: string): void {
    this.#lines += 1
    this.#unreadable = reason
  }

  /** The result. */
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

  /** Keeps what the last record says besides its place in the chain. */
  #keep(): void {
    const { head = '', seq: size } = this.#chain.place
    if (this.#chain.erasure !== undefined) this.#erasures.push(this.#chain.erasure)
    if (size !== this.#watchedNext) return
    this.#watched.push({ size, head, subtrees: this.#tree?.subtrees() ?? [] })
    this.#watchedNext = this.#watch[this.#watched.length] ?? 0
  }
}
