import { placeOf } from '../proof/chain-check.js'
import {
  ExportCheck,
  type ExportFault,
  type VerifiedExport as FoundExport,
  emptyExport,
  readFirstLine,
} from '../proof/export-check.js'
import { type JobsLater, runLater } from '../proof/job.js'
import { KeptCheckpoint, type KeptStrand } from '../proof/kept-checkpoint.js'
import { type ExaminedRecord, type ReadLine, readLineText } from '../proof/record.js'
import { SegmentCheck } from '../proof/segment-check.js'
import type { Manifest } from '../strand/strand-export.js'
import { type ExportSource, type UnreadableLine, textLines } from './text-lines.js'
import { requireEd25519, webCryptoJobs } from './webcrypto.js'

/** A valid export. */
export type VerifiedExport = Omit<FoundExport, 'signaturesPassed' | 'watched'> & {
  /** With `kept`: the strand as it was then, which the export continues. */
  kept?: KeptStrand
}

/** Whether an export is valid. */
export type VerifyResult = VerifiedExport | ExportFault

/** What the caller trusts, and a callback for progress. */
export interface VerifyOptions {
  /**
   * The agent's public key, 64 hex digits, known from elsewhere than the export: it must have signed a record of it.
   * Without it an export is only checked against itself, and anyone can make one that passes.
   */
  publicKey?: string | undefined
  /**
   * The strand, 64 hex digits, noted when it was first seen: whoever holds the key can begin another strand with it,
   * for an agent of the same name.
   */
  strand?: string | undefined
  /**
   * A kept checkpoint of the strand, or one from an answer as of a moment: the export must begin with the records that
   * it counts, and contain its key as the one in force after them or as one of a later rotation.
   */
  kept?: string | undefined
  /** Called after every 1,000 records. */
  onProgress?: ((records: number) => void) | undefined
}

/** Records whose hashes and signatures are computed at the same time: WebCrypto uses other threads. */
const EXAMINED_AHEAD = 64
const PROGRESS_RECORDS = 1_000

/**
 * Checks an export with WebCrypto alone (docs/FORMAT.md, Checking an export): every link, hash, body, signature and
 * seal, key rotations, the trailer and its checkpoint. Memory does not grow with the strand.
 * @throws Error where the platform has no Ed25519; what the source throws
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

/** The running check of one export. */
class Verification {
  readonly #manifest: Manifest
  readonly #options: VerifyOptions
  readonly #segment: SegmentCheck
  readonly #whole: ExportCheck
  readonly #kept: KeptCheckpoint | undefined
  readonly #jobs: JobsLater = webCryptoJobs()
  readonly #waiting: PendingLine[] = []

  constructor(manifest: Manifest, options: VerifyOptions) {
    this.#manifest = manifest
    this.#options = options
    const how = { trustedKey: options.publicKey?.toLowerCase() }
    this.#segment = new SegmentCheck(manifest, { place: placeOf(manifest) }, how)
    this.#whole = new ExportCheck(manifest, how)
    if (options.kept !== undefined) this.#kept = new KeptCheckpoint(options.kept)
  }

  async run(lines: AsyncIterable<string | UnreadableLine>): Promise<VerifyResult> {
    await this.#follow()
    for await (const text of lines) {
      if (typeof text !== 'string') {
        await this.#takeDownTo(0)
        return this.#segment.ended ? this.#end() : this.#unreadable(text)
      }
      const line = readLineText(text)
      const record = line !== undefined && 'record' in line ? line.record : undefined
      const examined = record && runLater(this.#segment.examine(record), this.#jobs)
      this.#waiting.push({ line, examined })
      // A record before an invalid line may be wrong as well, and the first fault has to be named.
      await this.#takeDownTo(record === undefined ? 0 : EXAMINED_AHEAD - 1)
      if (this.#segment.ended) break
    }
    await this.#takeDownTo(0)
    return this.#end()
  }

  async #takeDownTo(count: number): Promise<void> {
    while (this.#waiting.length > count && !this.#segment.ended) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      const before = this.#segment.records
      await runLater(this.#segment.take(next.line, await next.examined), this.#jobs)
      if (this.#segment.records === before) continue
      await this.#follow()
      if (this.#segment.records % PROGRESS_RECORDS === 0) this.#options.onProgress?.(this.#segment.records)
    }
  }

  async #follow(): Promise<void> {
    if (this.#kept !== undefined) await runLater(this.#kept.follow(this.#segment.place), this.#jobs)
  }

  #unreadable({ reason }: UnreadableLine): ExportFault {
    const { lines, place, trailer } = this.#segment.result()
    const line = lines + 2
    return { ok: false, ...(trailer === undefined && { seq: place.seq }), line, reason }
  }

  async #end(): Promise<VerifyResult> {
    const result = this.#segment.result()
    const found =
      (await runLater(this.#whole.join(result), this.#jobs)) ??
      (await runLater(this.#whole.end(), this.#jobs))
    if (!found.ok || this.#kept === undefined) return found
    const { strand, firstSeq, lastSeq } = found
    const strandSize = this.#manifest.recordCount + 1
    const reason = this.#kept.fault({ strand, firstSeq, lastSeq, strandSize })
    if (reason !== undefined) return { ok: false, line: result.lines + 1, reason }
    return { ...found, kept: this.#kept.strand }
  }
}
