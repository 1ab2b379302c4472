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

/** The result for a valid export. */
export interface VerifiedExport {
  ok: true
  agent: string
  strand: string
  records: number
  firstSeq: number
  lastSeq: number
  /** Hash of the last record. */
  chainHead: string
  /** The key in force after the last record. */
  publicKey: string
  /** Signed records whose signature was checked: all, unless `fast` was set. */
  signaturesChecked: number
  /** With `fast`: signed records whose signature was not checked. */
  signaturesPassed?: number
  /** Records covered by the signature of a later record. */
  sealed: number
  /** Records without a body whose position in the chain is valid. */
  erased: number
  /**
   * Erased records that no `sys/erase` record of the export names: they were erased after its last record, or
   * their body was removed from the export. Absent if there are none.
   */
  unexplained?: Unexplained
  /**
   * Records whose body is withheld from the principal of the export, and whose position in the chain is
   * valid.
   */
  withheld: number
  /**
   * How many of the first records of the strand were imported to the server that signed the last
   * `sys/imported` record; 0 without such a record. Another server wrote these records.
   */
  imported: number
  /** Keys of the strand within the export: 1 without a rotation. */
  keys: number
  /** Whether the trailer has a checkpoint, which was then verified. */
  checkpoint: boolean
  /** The export begins after genesis, so that earlier records are not proven. */
  partial: boolean
  /** With `watch`: the watched sizes from the first record of the export to its last. */
  watched?: WatchedStrand[]
}

/** The first `size` records of a strand. */
export interface WatchedStrand {
  size: number
  /** Hash of the last of these records. */
  head: string
  /** Their tree root, 64 hex digits; undefined if the export does not begin at genesis. */
  root: string | undefined
}

/** The first fault of an export. */
export interface ExportFault {
  ok: false
  /** The invalid record, if the fault concerns one record. */
  seq?: number
  /** Line of the export, counted from 1. */
  line: number
  reason: string
}

/** The progress of a check after a signed record, from which another check can resume. */
export interface ExportPosition {
  place: ChainPlace
  /** Records so far. */
  records: number
  /** The tree of these records; empty if the export does not begin at genesis. */
  subtrees: Subtree[]
}

/** How a whole export is checked. */
export interface ExportOptions extends SegmentOptions {
  /** The expected strand; a key is not enough, because two strands can have the same key. */
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

/** Parses the first line of an export. */
export function readFirstLine(line: string, { strand }: ExportOptions): Manifest | ExportFault {
  const manifest = parseManifest(line)
  if (manifest === undefined) return firstLineFault('The first line is no strand-export/v1 manifest')
  const expected = strand === undefined || strand.toLowerCase() === manifest.strand
  return expected ? manifest : firstLineFault('The export is of another strand than the one given')
}

function firstLineFault(reason: string): ExportFault {
  return { ok: false, line: 1, reason }
}

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

/** The fault of the trailer of an export whose records are valid, or undefined. */
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

/** Joins the results of the segments of one export in their order, and checks the export as a whole. */
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
  /** Lines so far, including the manifest. */
  #lines = 1

  constructor(manifest: Manifest, options: SegmentOptions) {
    this.#manifest = manifest
    this.#options = options
    this.#place = placeOf(manifest)
    this.#trusted = options.trustedKey === undefined
  }

  /** The state of the chain after the joined segments. */
  get place(): ChainPlace {
    return this.#place
  }

  /** The trailer, once it was read. */
  get trailer(): Trailer | undefined {
    return this.#trailer
  }

  /** Records so far. */
  get records(): number {
    return this.#tally.records
  }

  /**
   * Whether the result of the next segment, which was checked from an assumed state, holds for the actual
   * state.
   */
  *fits({ assumed }: SegmentResult): Check<boolean> {
    if (assumed === undefined) return true
    const first = readLineText(assumed.line)
    if (first === undefined || !('record' in first)) return false
    const chain = new ChainCheck(this.#manifest, this.#place, this.#options)
    const examined = yield* chain.examine(first.record)
    return chain.take(first.record, examined) === undefined && isSamePlace(chain.place, assumed.after)
  }

  /**
   * Adds the result of the next segment, for which `fits` is true.
   * @returns the fault of the segment, or undefined
   * @throws Error for a line that cannot be read
   */
  *join(result: SegmentResult): Check<ExportFault | undefined> {
    const { lines, fault, unreadable } = result
    // A segment that was checked with the known trailer returns the same object.
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

  /** The result for the whole export, after all segments are joined. */
  *end(): Check<VerifiedExport | ExportFault> {
    const line = this.#lines
    const trailer = this.#trailer
    if (trailer === undefined) return { ok: false, line, reason: 'The export is cut off: it has no trailer' }
    const end = this.#end()
    const reason = endFault(this.#manifest, end) ?? (yield* trailerFault(this.#manifest, trailer, end))
    if (reason !== undefined) return { ok: false, line, reason }
    const seq = this.#isWhole(trailer) ? this.#erasures.firstFrom(this.#tally.imported) : undefined
    if (seq !== undefined) {
      return {
        ok: false,
        seq,
        line: 2 + seq,
        reason: 'The body is missing, and no sys/erase record names it',
      }
    }
    return this.#verified(trailer, this.#erasures.unexplained)
  }

  /** Whether the export is complete, so that it must contain the erasure of any of its records. */
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
  sum.imported = Math.max(sum.imported, more.imported)
}

/** Erased records that no `sys/erase` record of an export names. */
export interface Unexplained {
  count: number
  /** Seq of the first such record. */
  firstSeq: number
}

/**
 * Matches erased records with their `sys/erase` records. Only that record proves an erasure, because a body
 * can be removed from an export and declared erased. Memory grows with the number of erased records.
 */
export class ErasureCheck {
  readonly #open = new Map<number, string>()

  /** Adds erasures in the order of their records: the erasing record follows the erased one. */
  take(erasure: Erasure): void {
    if (erasure.kind === 'erased') this.#open.set(erasure.seq, erasure.hash)
    else if (this.#open.get(erasure.targetSeq) === erasure.target) this.#open.delete(erasure.targetSeq)
  }

  /** Erased records that no record so far names; undefined if there are none. */
  get unexplained(): Unexplained | undefined {
    // A map preserves the order of insertion.
    for (const firstSeq of this.#open.keys()) return { count: this.#open.size, firstSeq }
    return undefined
  }

  /** The first erased record from `fromSeq` on that no record so far names. */
  firstFrom(fromSeq: number): number | undefined {
    for (const seq of this.#open.keys()) if (seq >= fromSeq) return seq
    return undefined
  }
}
