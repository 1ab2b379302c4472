import { limits } from '../base/limits/limits.js'
import { lineEnd } from '../base/line-splitter.js'
import {
  ExportCheck,
  type ExportFault,
  type ExportOptions,
  type VerifiedExport,
  emptyExport,
  readFirstLine,
} from '../proof/export-check.js'
import { runNow } from '../proof/job.js'
import { jobs } from '../proof/node/jobs.js'
import { checkSegment } from '../proof/node/segment.js'
import type { SegmentOptions, SegmentResult } from '../proof/segment-check.js'
import type { Manifest } from '../strand/strand-export.js'
import { SegmentPool } from './segment-pool.js'
import { splitSegments } from './split-lines.js'

/** How often `onProgress` is called. */
const PROGRESS_RECORDS = 1_000

/** Options of the check, and a callback for progress. */
export interface VerifyOptions extends ExportOptions {
  onProgress?: (records: number, total: number) => void
}

/**
 * Checks an export with the same verdict as `verifyExport`, in threads: one for each core, each with a segment of the
 * lines. Memory does not grow with the strand. An export of one segment is checked without threads.
 * @throws Error when the export cannot be read
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

/** A segment that a thread works on. */
interface SegmentInWork {
  bytes: Uint8Array
  found: Promise<SegmentResult | undefined>
}

class SegmentedCheck {
  readonly #manifest: Manifest
  readonly #options: SegmentOptions
  readonly #onProgress: VerifyOptions['onProgress']
  readonly #spare: Uint8Array[]
  readonly #whole: ExportCheck
  readonly #sent: SegmentInWork[] = []
  #pool: SegmentPool | undefined
  #told = 0

  constructor(manifest: Manifest, { onProgress, ...options }: VerifyOptions, spare: Uint8Array[]) {
    this.#manifest = manifest
    this.#options = options
    this.#onProgress = onProgress
    this.#spare = spare
    this.#whole = new ExportCheck(manifest, options)
  }

  /** Takes the lines after the manifest in the first segment. */
  first(bytes: Uint8Array): ExportFault | undefined {
    return this.#join(this.#checkHere(bytes))
  }

  /** Takes the other segments. An unreadable line is reported after the faults before it. */
  async rest(segments: AsyncIterable<Uint8Array>): Promise<ExportFault | undefined> {
    try {
      for await (const bytes of segments) {
        const pool = (this.#pool ??= new SegmentPool())
        this.#sent.push({ bytes, found: pool.check(this.#segment(bytes)) })
        const fault = this.#sent.length >= pool.segmentsMax ? await this.#joinNext() : undefined
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
    return runNow(this.#whole.end(), jobs)
  }

  async close(): Promise<void> {
    // The results of the other segments are not needed any more.
    for (const { found } of this.#sent) found.catch(() => undefined)
    await this.#pool?.close()
  }

  async #joinAll(): Promise<ExportFault | undefined> {
    while (this.#sent.length > 0) {
      const fault = await this.#joinNext()
      if (fault !== undefined) return fault
    }
    return undefined
  }

  async #joinNext(): Promise<ExportFault | undefined> {
    const sent = this.#sent.shift()
    if (sent === undefined) return undefined
    const found = await sent.found
    const fits = found !== undefined && runNow(this.#whole.fits(found), jobs)
    const fault = this.#join(fits ? found : this.#checkHere(sent.bytes))
    const { buffer } = sent.bytes
    if (buffer.byteLength === limits.verifySegmentBytes) this.#spare.push(new Uint8Array(buffer))
    return fault
  }

  /** Checks a segment whose place is now known. */
  #checkHere(bytes: Uint8Array): SegmentResult {
    const result = checkSegment({
      ...this.#segment(bytes),
      place: this.#whole.place,
      trailer: this.#whole.trailer,
    })
    if (result === undefined) throw new Error('Expected a segment with a place to be checked')
    return result
  }

  #segment(bytes: Uint8Array) {
    return { manifest: this.#manifest, bytes, place: undefined, options: this.#options }
  }

  #join(result: SegmentResult): ExportFault | undefined {
    const fault = runNow(this.#whole.join(result), jobs)
    for (; this.#told + PROGRESS_RECORDS <= this.#whole.records;) {
      this.#told += PROGRESS_RECORDS
      this.#onProgress?.(this.#told, this.#manifest.toSeq - this.#manifest.fromSeq + 1)
    }
    return fault
  }
}
