import type { Manifest, Trailer } from '../strand/strand-export.js'
import {
  ChainCheck,
  type ChainPlace,
  type ChainTally,
  emptyTally,
  isSamePlace,
  placeOf,
  type Erasure,
} from './chain-check.js'
import { parseManifest } from './export-lines.js'
import type { Check } from './job.js'
import { verifyCheckpoint } from './note.js'
import { readLineText } from './record.js'
import type { SegmentOptions, SegmentResult, WatchedSize } from './segment-check.js'
import { type Subtree, TreeHasher } from './tree.js'

/** An export that was found valid. */
export interface VerifiedExport {
  ok: true
  agent: string
  strand: string
  /** Records in the export. */
  records: number
  firstSeq: number
  lastSeq: number
  /** Hash of the last record. */
  chainHead: string
  /** The key in force after the last record. */
  publicKey: string
  /** Records whose own signature was checked: all that have one, unless `fast` was set. */
  signaturesChecked: number
  /** With `fast`: records whose own signature was not checked. */
  signaturesPassed?: number
  /** Records covered by a later one's signature. */
  sealed: number
  /** Records whose body is gone and whose place in the chain is valid. */
  erased: number
  /**
   * Of these, those that no `sys/erase` of the export names: erased after the last record of the export, or left out by
   * whoever passed it on. Absent where there are none.
   */
  unexplained?: Unexplained
  /** Records whose body is withheld from whoever the export was made for, and whose place in the chain is valid. */
  withheld: number
  /** Keys followed through rotations: 1 when there was none. */
  keys: number
  /** Whether the trailer carried a checkpoint; if so, it was checked. */
  checkpoint: boolean
  /** The export begins after genesis: it proves its own links, not what came before them. */
  partial: boolean
  /** With `watch`: the sizes that the export reaches, except those before its first record. */
  watched?: WatchedStrand[]
}

/** The strand as it was when it had `size` records. */
export interface WatchedStrand {
  size: number
  /** Hash of the last of them. */
  head: string
  /** Root over them, 64 hex digits; undefined where the export does not begin at genesis. */
  root: string | undefined
}

/** The first fault found. */
export interface ExportFault {
  ok: false
  /** The record at fault, where the fault is one record's. */
  seq?: number
  /** Line of the export, counted from 1. */
  line: number
  reason: string
}

/** How far a check has come, after a signed record, so that another check can continue there. */
export interface ExportPosition {
  place: ChainPlace
  /** Records so far. */
  records: number
  /** The tree over them; empty where the export does not begin at genesis. */
  subtrees: Subtree[]
}

/** How a whole export is checked. */
export interface ExportOptions extends SegmentOptions {
  /** The strand that it must be of: two strands can have the same key. */
  strand?: string | undefined
}

/** The state after the records of an export. */
interface ExportEnd {
  place: ChainPlace
  records: number
  /** Whether the trusted key has signed one of the records, or no key was given. */
  trusted: boolean
  tree: TreeHasher
}

/** The fault of an export without lines. */
export const emptyExport: ExportFault = { ok: false, line: 0, reason: 'The export is empty' }

/** Reads the first line of an export. */
export function readFirstLine(line: string, { strand }: ExportOptions): Manifest | ExportFault {
  const manifest = parseManifest(line)
  if (manifest === undefined) return firstLineFault('The first line is no strand-export/v1 manifest')
  const expected = strand === undefined || strand.toLowerCase() === manifest.strand
  return expected ? manifest : firstLineFault('The export is of another strand than the one given')
}

function firstLineFault(reason: string): ExportFault {
  return { ok: false, line: 1, reason }
}

/** What is wrong with the end of an export's records, or undefined. */
export function endFault(manifest: Manifest, end: Omit<ExportEnd, 'tree'>): string | undefined {
  const { toSeq, recordCount } = manifest
  const { seq, sealAwaited } = end.place
  if (end.records === 0) return 'The export has no records'
  if (seq !== toSeq + 1) return `The manifest promises records up to seq ${toSeq}, the last one is ${seq - 1}`
  if (recordCount < toSeq) return 'The manifest counts too few records'
  if (sealAwaited !== undefined) {
    return `The last record is not signed: record ${sealAwaited}, which seals it, is not in the export`
  }
  return end.trusted ? undefined : 'No record is signed by the key given'
}

/** What is wrong with the trailer of an export whose records were all accepted, or undefined. */
export function* trailerFault(
  manifest: Manifest,
  trailer: Trailer,
  end: ExportEnd,
): Check<string | undefined> {
  const { seq: size, head, key } = end.place
  if (trailer.chainHead !== head) return 'The chain head of the trailer is not the hash of the last record'
  if (trailer.records !== end.records)
    return `The trailer counts ${trailer.records} records, not ${end.records}`
  if (trailer.recordCount !== undefined && trailer.recordCount < manifest.recordCount) {
    return 'The trailer counts fewer records of the strand than the manifest'
  }
  if (trailer.checkpoint === undefined) return undefined
  const checkpoint = yield* verifyCheckpoint(trailer.checkpoint, key)
  if (checkpoint === undefined) return 'The checkpoint does not verify'
  if (checkpoint.origin !== `strandfast/${manifest.strand}`) return 'The checkpoint is of another strand'
  if (checkpoint.size !== size) return `The checkpoint is of ${checkpoint.size} records, not ${size}`
  if (manifest.fromSeq > 0 || (yield* end.tree.root()) === checkpoint.rootHex) return undefined
  return 'The root of the checkpoint is another'
}

/** Joins the segments of one export, in their order, and finds faults that only all of them together show. */
export class ExportCheck {
  readonly #manifest: Manifest
  readonly #options: SegmentOptions
  readonly #tree = new TreeHasher()
  readonly #tally = emptyTally()
  readonly #watched: WatchedStrand[] = []
  readonly #erasures = new ErasureCheck()
  #place: ChainPlace
  #trusted: boolean
  #trailer: Trailer | undefined
  /** Lines so far, the manifest's among them. */
  #lines = 1

  constructor(manifest: Manifest, options: SegmentOptions) {
    this.#manifest = manifest
    this.#options = options
    this.#place = placeOf(manifest)
    this.#trusted = options.trustedKey === undefined
  }

  /** Where the segments so far lead to. */
  get place(): ChainPlace {
    return this.#place
  }

  /** The trailer, once it has come. */
  get trailer(): Trailer | undefined {
    return this.#trailer
  }

  /** Records so far. */
  get records(): number {
    return this.#tally.records
  }

  /** Whether the result of the next segment, which was checked from an assumed place, holds at its real place. */
  *fits({ assumed }: SegmentResult): Check<boolean> {
    if (assumed === undefined) return true
    const first = readLineText(assumed.line)
    if (first === undefined || !('record' in first)) return false
    const chain = new ChainCheck(this.#manifest, this.#place, this.#options)
    const examined = yield* chain.examine(first.record)
    return chain.take(first.record, examined) === undefined && isSamePlace(chain.place, assumed.after)
  }

  /**
   * Takes the result of the next segment, which `fits`.
   * @returns what is wrong with it
   * @throws Error for a line that cannot be read
   */
  *join(result: SegmentResult): Check<ExportFault | undefined> {
    const { lines, fault, unreadable } = result
    // A segment that was checked with the trailer in mind has it.
    if (this.#trailer !== undefined && lines > 0 && result.trailer !== this.#trailer) {
      return { ok: false, line: this.#lines + 1, reason: 'A line follows the trailer' }
    }
    this.#lines += lines
    if (unreadable !== undefined) throw new Error(unreadable)
    if (fault !== undefined) {
      const { seq, reason } = fault
      return { ok: false, ...(seq !== undefined && { seq }), line: this.#lines, reason }
    }
    for (const watched of result.watched) yield* this.#watch(watched)
    for (const subtree of result.subtrees) yield* this.#tree.join(subtree)
    for (const erasure of result.erasures) this.#erasures.take(erasure)
    add(this.#tally, result.tally)
    this.#trusted ||= result.trusted
    this.#place = result.place
    this.#trailer = result.trailer
    return undefined
  }

  /** The verdict over the whole export, once all segments are joined. */
  *end(): Check<VerifiedExport | ExportFault> {
    const line = this.#lines
    const trailer = this.#trailer
    if (trailer === undefined) return { ok: false, line, reason: 'The export is cut off: it has no trailer' }
    const end = this.#end()
    const reason = endFault(this.#manifest, end) ?? (yield* trailerFault(this.#manifest, trailer, end))
    if (reason !== undefined) return { ok: false, line, reason }
    const { unexplained } = this.#erasures
    if (unexplained !== undefined && this.#isWhole(trailer)) {
      const { firstSeq: seq } = unexplained
      return { ok: false, seq, line: 2 + seq, reason: 'The body is gone, and no sys/erase tells of it' }
    }
    return this.#verified(trailer, unexplained)
  }

  /** Whether the export would contain and show an erasure of any of its records. */
  #isWhole({ recordCount }: Trailer): boolean {
    const { fromSeq, toSeq } = this.#manifest
    return fromSeq === 0 && recordCount === toSeq && this.#tally.withheld === 0
  }

  *#watch({ size, head, subtrees }: WatchedSize): Check<void> {
    let root: string | undefined
    if (this.#manifest.fromSeq === 0) {
      const tree = new TreeHasher()
      for (const subtree of [...this.#tree.subtrees(), ...subtrees]) yield* tree.join(subtree)
      root = yield* tree.root()
    }
    this.#watched.push({ size, head, root })
  }

  #end(): ExportEnd {
    return { place: this.#place, records: this.#tally.records, trusted: this.#trusted, tree: this.#tree }
  }

  #verified(trailer: Trailer, unexplained: Unexplained | undefined): VerifiedExport {
    const { agent, strand, fromSeq } = this.#manifest
    const { rotations, signaturesPassed, ...tally } = this.#tally
    const { fast = false, watch } = this.#options
    return {
      ok: true,
      agent,
      strand,
      ...tally,
      firstSeq: fromSeq,
      lastSeq: this.#place.seq - 1,
      chainHead: trailer.chainHead,
      publicKey: this.#place.key,
      keys: rotations + 1,
      checkpoint: trailer.checkpoint !== undefined,
      partial: fromSeq > 0,
      ...(unexplained !== undefined && { unexplained }),
      ...(fast && { signaturesPassed }),
      ...(watch !== undefined && { watched: this.#watched }),
    }
  }
}

function add(sum: ChainTally, more: ChainTally): void {
  sum.records += more.records
  sum.signaturesChecked += more.signaturesChecked
  sum.signaturesPassed += more.signaturesPassed
  sum.sealed += more.sealed
  sum.erased += more.erased
  sum.withheld += more.withheld
  sum.rotations += more.rotations
}

/** Erased records that nothing in an export explains. */
export interface Unexplained {
  count: number
  /** The first of them. */
  firstSeq: number
}

/**
 * Looks for the `sys/erase` of each erased record: whoever passes an export on can leave a body out and call it erased,
 * and only that record shows a real erasure. It keeps one entry for each erased record.
 */
export class ErasureCheck {
  readonly #open = new Map<number, string>()

  /** Takes what records say, in their order: the erasing record comes after the erased one. */
  take(erasure: Erasure): void {
    if (erasure.kind === 'erased') this.#open.set(erasure.seq, erasure.hash)
    else if (this.#open.get(erasure.targetSeq) === erasure.target) this.#open.delete(erasure.targetSeq)
  }

  /** Erasures that no record so far explains; undefined where there are none. */
  get unexplained(): Unexplained | undefined {
    // A map keeps the order in which records came.
    for (const firstSeq of this.#open.keys()) return { count: this.#open.size, firstSeq }
    return undefined
  }
}
