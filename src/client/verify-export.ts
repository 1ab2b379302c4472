import { placeOf } from '../proof/chain-check.js'
import {
  ExportCheck,
  type ExportFault,
  type VerifiedExport as FoundExport,
  emptyExport,
  readFirstLine,
} from '../proof/export-check.js'
import { type AsyncJobs, runAsync } from '../proof/job.js'
import { KeptCheckpoint, type KeptStrand } from '../proof/kept-checkpoint.js'
import { type ExaminedRecord, type ReadLine, readLineText } from '../proof/record.js'
import { SegmentCheck } from '../proof/segment-check.js'
import type { Manifest } from '../strand/strand-export.js'
import { type ExportSource, type UnreadableLine, textLines } from './text-lines.js'
import { requireEd25519, webCryptoJobs } from './webcrypto.js'

/** A valid export. */
export type VerifiedExport = Omit<FoundExport, 'signaturesPassed' | 'watched'> & {
  /** With the option `kept`: the strand at that checkpoint, which the export continues. */
  kept?: KeptStrand
}

/** Whether an export is valid. */
export type VerifyResult = VerifiedExport | ExportFault

/** Values that the caller trusts, and a callback for progress. */
export interface VerifyOptions {
  /**
   * The agent's public key, 64 hex digits, from another source than the export; it must have signed a record
   * of the export. Without it, only the consistency of the export is checked, and anyone can create an export
   * that passes.
   */
  publicKey?: string | undefined
  /**
   * The id of the strand, 64 hex digits, as noted when it was first seen: the owner of the key can begin
   * another strand with it, for an agent of the same name.
   */
  strand?: string | undefined
  /**
   * An earlier checkpoint of the strand, also one from an answer as of a moment. The export must begin with
   * the records of the checkpoint. The key of the checkpoint must be the current key after these records, or
   * a key of a later rotation.
   */
  kept?: string | undefined
  /** Called after every 1,000 records. */
  onProgress?: ((records: number) => void) | undefined
}

/** Number of records that are hashed and verified concurrently: WebCrypto uses other threads. */
const CONCURRENT_RECORDS = 64
const PROGRESS_RECORDS = 1_000

/**
 * Checks an export with WebCrypto only (docs/FORMAT.md, Checking an export): every link, hash, body,
 * signature and seal, the key rotations, the trailer and its checkpoint. Memory does not grow with the
 * strand.
 * @throws Error if the platform has no Ed25519; errors of the source
 */
export async function verifyExport(source: ExportSource, options: VerifyOptions = {}): Promise<VerifyResult> {
  await requireEd25519()
  const lines = textLines(source)
  try {
    const first = await lines.next()
    if (first.done) return emptyExport
    if (typeof first.value !== 'string') return { ok: false, line: 1, reason: first.value.reason }
    const manifest = readFirstLine(first.value, options)
    if ('ok' in manifest) return manifest
    return await new Verification(manifest, options).run(lines)
  } finally {
    await lines.return()
  }
}

interface PendingLine {
  line: ReadLine
  examined: Promise<ExaminedRecord> | undefined
}

class Verification {
  readonly #manifest: Manifest
  readonly #options: VerifyOptions
  readonly #segment: SegmentCheck
  readonly #check: ExportCheck
  readonly #kept: KeptCheckpoint | undefined
  readonly #jobs: AsyncJobs = webCryptoJobs()
  readonly #pending: PendingLine[] = []

  constructor(manifest: Manifest, options: VerifyOptions) {
    this.#manifest = manifest
    this.#options = options
    const trust = { trustedKey: options.publicKey?.toLowerCase() }
    this.#segment = new SegmentCheck(manifest, { place: placeOf(manifest) }, trust)
    this.#check = new ExportCheck(manifest, trust)
    if (options.kept !== undefined) this.#kept = new KeptCheckpoint(options.kept)
  }

  async run(lines: AsyncIterable<string | UnreadableLine>): Promise<VerifyResult> {
    await this.#follow()
    for await (const text of lines) {
      if (typeof text !== 'string') {
        await this.#processUntil(0)
        return this.#segment.ended ? this.#end() : this.#unreadable(text)
      }
      const line = readLineText(text)
      const record = line !== undefined && 'record' in line ? line.record : undefined
      const examined = record && runAsync(this.#segment.examine(record), this.#jobs)
      this.#pending.push({ line, examined })
      // Before an invalid line, all pending records are processed, because the first fault must be reported.
      await this.#processUntil(record === undefined ? 0 : CONCURRENT_RECORDS - 1)
      if (this.#segment.ended) break
    }
    await this.#processUntil(0)
    return this.#end()
  }

  /** Processes pending lines until at most `count` are left, or a fault is checked. */
  async #processUntil(count: number): Promise<void> {
    while (this.#pending.length > count && !this.#segment.ended) {
      const next = this.#pending.shift()
      if (next === undefined) return
      const before = this.#segment.records
      await runAsync(this.#segment.take(next.line, await next.examined), this.#jobs)
      if (this.#segment.records === before) continue
      await this.#follow()
      if (this.#segment.records % PROGRESS_RECORDS === 0) this.#options.onProgress?.(this.#segment.records)
    }
  }

  async #follow(): Promise<void> {
    if (this.#kept !== undefined) await runAsync(this.#kept.follow(this.#segment.place), this.#jobs)
  }

  #unreadable({ reason }: UnreadableLine): ExportFault {
    const { lines, place, trailer } = this.#segment.result()
    const line = lines + 2
    return { ok: false, ...(trailer === undefined && { seq: place.seq }), line, reason }
  }

  async #end(): Promise<VerifyResult> {
    const result = this.#segment.result()
    const checked =
      (await runAsync(this.#check.join(result), this.#jobs)) ??
      (await runAsync(this.#check.end(), this.#jobs))
    if (!checked.ok || this.#kept === undefined) return checked
    const { strand, firstSeq, lastSeq } = checked
    const strandSize = this.#manifest.recordCount + 1
    const reason = this.#kept.fault({ strand, firstSeq, lastSeq, strandSize })
    if (reason !== undefined) return { ok: false, line: result.lines + 1, reason }
    return { ...checked, kept: this.#kept.strand }
  }
}
