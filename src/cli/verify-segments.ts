import { limits } from '../base/limits/limits.js'
import { lineEnd } from '../base/line-splitter.js'
import {
  emptyExport,
  ExportCheck,
  type ExportFault,
  type ExportOptions,
  readFirstLine,
  type VerifiedExport,
} from '../proof/export-check.js'
import { runSync } from '../proof/job.js'
import { jobs } from '../proof/node/jobs.js'
import { checkSegment, type Segment } from '../proof/node/segment.js'
import type { SegmentOptions, SegmentResult, WatchedSize } from '../proof/segment-check.js'
import type { Manifest, Trailer } from '../strand/strand-export.js'
import { splitSegments } from './split-lines.js'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { workerEntry } from '../base/worker-entry.js'
import { anyOf, isFlag, isNumber, isText, listOf, members, oneOf, optional } from '../base/shape.js'
import type { ChainTally, Erasure } from '../proof/chain-check.js'
import { answerOf } from '../protocol/pool-tasks.js'
import { isPlace, isSubtree } from '../protocol/reader-tasks.js'

/** `onProgress` is called once per this many records. */
const PROGRESS_RECORDS = 1_000

/**
 * Options of the check, and a callback for progress with the records checked and the total of the manifest.
 */
export interface VerifyOptions extends ExportOptions {
  onProgress?: (records: number, total: number) => void
}

/**
 * Checks an export as `verifyExport` does, in parallel: one thread for each core checks segments of the
 * lines. Memory does not grow with the strand. An export of a single segment is checked without threads.
 * @throws Error if the export cannot be read
 */
export async function verifySegments(
  chunks: AsyncIterable<Uint8Array>,
  options: VerifyOptions,
): Promise<VerifiedExport | ExportFault> {
  const spare: Uint8Array[] = []
  const segments = splitSegments(chunks, spare)
  const { value: first } = await segments.next()
  if (first === undefined) return emptyExport
  const line = first.subarray(0, lineEnd(first, 0))
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(line)
  const manifest = readFirstLine(text, options)
  if ('ok' in manifest) return manifest
  const check = new SegmentedCheck(manifest, options, spare)
  try {
    const fault = check.first(first.subarray(line.length + 1)) ?? (await check.rest(segments))
    return fault ?? check.end()
  } finally {
    await check.close()
    await segments.return(undefined)
  }
}

interface PendingSegment {
  bytes: Uint8Array
  result: Promise<SegmentResult | undefined>
}

class SegmentedCheck {
  readonly #manifest: Manifest
  readonly #options: SegmentOptions
  readonly #onProgress: VerifyOptions['onProgress']
  readonly #spare: Uint8Array[]
  readonly #check: ExportCheck
  readonly #pending: PendingSegment[] = []
  #pool: SegmentPool | undefined
  #reportedRecords = 0

  constructor(manifest: Manifest, { onProgress, ...options }: VerifyOptions, spare: Uint8Array[]) {
    this.#manifest = manifest
    this.#options = options
    this.#onProgress = onProgress
    this.#spare = spare
    this.#check = new ExportCheck(manifest, options)
  }

  /** Checks the lines after the manifest in the first segment. */
  first(bytes: Uint8Array): ExportFault | undefined {
    return this.#join(this.#checkHere(bytes))
  }

  /** Checks the other segments. Faults before an unreadable line take precedence over its error. */
  async rest(segments: AsyncIterable<Uint8Array>): Promise<ExportFault | undefined> {
    try {
      for await (const bytes of segments) {
        const pool = (this.#pool ??= new SegmentPool())
        this.#pending.push({ bytes, result: pool.check(this.#segment(bytes)) })
        const fault = this.#pending.length >= pool.segmentsMax ? await this.#joinNext() : undefined
        if (fault !== undefined) return fault
      }
    } catch (error) {
      const fault = await this.#joinAll()
      if (fault === undefined) throw error
      return fault
    }
    return this.#joinAll()
  }

  end(): VerifiedExport | ExportFault {
    return runSync(this.#check.end(), jobs)
  }

  async close(): Promise<void> {
    // The results of the remaining segments are no longer needed, so their errors are ignored.
    for (const { result } of this.#pending) result.catch(() => undefined)
    await this.#pool?.close()
  }

  async #joinAll(): Promise<ExportFault | undefined> {
    while (this.#pending.length > 0) {
      const fault = await this.#joinNext()
      if (fault !== undefined) return fault
    }
    return undefined
  }

  async #joinNext(): Promise<ExportFault | undefined> {
    const segment = this.#pending.shift()
    if (segment === undefined) return undefined
    const result = await segment.result
    const fits = result !== undefined && runSync(this.#check.fits(result), jobs)
    const fault = this.#join(fits ? result : this.#checkHere(segment.bytes))
    const { buffer } = segment.bytes
    if (buffer.byteLength === limits.verifySegmentBytes) this.#spare.push(new Uint8Array(buffer))
    return fault
  }

  /** Checks a segment in this thread, from the position that is now known. */
  #checkHere(bytes: Uint8Array): SegmentResult {
    const result = checkSegment({
      ...this.#segment(bytes),
      place: this.#check.place,
      trailer: this.#check.trailer,
    })
    if (result === undefined) throw new Error('A segment with a known position was not checked')
    return result
  }

  #segment(bytes: Uint8Array) {
    return { manifest: this.#manifest, bytes, place: undefined, options: this.#options }
  }

  #join(result: SegmentResult): ExportFault | undefined {
    const fault = runSync(this.#check.join(result), jobs)
    for (; this.#reportedRecords + PROGRESS_RECORDS <= this.#check.records;) {
      this.#reportedRecords += PROGRESS_RECORDS
      this.#onProgress?.(this.#reportedRecords, this.#manifest.toSeq - this.#manifest.fromSeq + 1)
    }
    return fault
  }
}

/** The result of a thread: undefined if the position is not known and the first line does not contain it. */
const isResult = optional(
  members<SegmentResult>({
    lines: isNumber,
    place: isPlace,
    tally: members<ChainTally>({
      records: isNumber,
      signaturesChecked: isNumber,
      signaturesPassed: isNumber,
      sealed: isNumber,
      erased: isNumber,
      withheld: isNumber,
      rotations: isNumber,
      imported: isNumber,
    }),
    trusted: isFlag,
    subtrees: listOf(isSubtree),
    watched: listOf(members<WatchedSize>({ size: isNumber, head: isText, subtrees: listOf(isSubtree) })),
    erasures: listOf(
      anyOf(
        members<Extract<Erasure, { kind: 'erased' }>>({ kind: oneOf('erased'), seq: isNumber, hash: isText }),
        members<Extract<Erasure, { kind: 'named' }>>({
          kind: oneOf('named'),
          targetSeq: isNumber,
          target: isText,
        }),
      ),
    ),
    trailer: optional(
      members<Trailer>({
        chainHead: isText,
        records: isNumber,
        checkpoint: optional(isText),
        recordCount: optional(isNumber),
      }),
    ),
    fault: optional(members<{ seq?: number; reason: string }>({ seq: optional(isNumber), reason: isText })),
    unreadable: optional(isText),
    assumed: optional(members({ line: isText, after: isPlace })),
  }),
)

export class SegmentPool {
  readonly #pool: Piscina
  /** Maximum number of segments that are being checked or queued: two for each thread. */
  readonly segmentsMax: number

  constructor() {
    const threads = Math.min(availableParallelism(), limits.verifyThreadsMax)
    this.segmentsMax = 2 * threads
    this.#pool = new Piscina({
      filename: fileURLToPath(workerEntry('verify')),
      minThreads: threads,
      maxThreads: threads,
      maxQueue: this.segmentsMax,
    })
  }

  async check(segment: Segment): Promise<SegmentResult | undefined> {
    const result: unknown = await this.#pool.run(segment, { name: 'verifySegment' })
    return answerOf(isResult, result)
  }

  async close(): Promise<void> {
    // Piscina emits a result that arrives afterwards as an error.
    this.#pool.on('error', () => undefined)
    await this.#pool.destroy()
  }
}
