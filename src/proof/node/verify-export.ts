import { placeOf } from '../chain-check.js'
import {
  ExportCheck,
  type ExportFault,
  type ExportOptions,
  type VerifiedExport,
  emptyExport,
  readFirstLine,
} from '../export-check.js'
import { runNow } from '../job.js'
import { readLineText } from '../record.js'
import { SegmentCheck } from '../segment-check.js'
import { jobs } from './jobs.js'

/** How often `onProgress` is called. */
const PROGRESS_RECORDS = 1_000

/**
 * Checks an export from nothing but its lines (docs/FORMAT.md, Checking an export): every link, hash, body, signature and
 * seal, key rotations, the trailer and its checkpoint. Memory does not grow with the strand.
 *
 * `publicKey` is what the caller trusts: it must have signed a record of the export, as the first key or as one that a
 * rotation led to. That signature vouches for the records before it, the rotations for those after it. Without a key
 * the export is only checked against itself. `strand` is that of `ExportOptions`, `fast` of `ChainOptions`, `watch` of
 * `SegmentOptions`.
 */
export async function verifyExport(
  lines: AsyncIterable<string> | Iterable<string>,
  options: {
    publicKey?: string | undefined
    strand?: string | undefined
    fast?: boolean
    watch?: readonly number[]
    onProgress?: (records: number) => void
  } = {},
): Promise<VerifiedExport | ExportFault> {
  const { publicKey: trustedKey, onProgress, ...how } = options
  const asked: ExportOptions = { trustedKey, ...how }
  let whole: ExportCheck | undefined
  let segment: SegmentCheck | undefined
  for await (const text of lines) {
    if (whole === undefined || segment === undefined) {
      const manifest = readFirstLine(text, asked)
      if ('ok' in manifest) return manifest
      whole = new ExportCheck(manifest, asked)
      segment = new SegmentCheck(manifest, { place: placeOf(manifest) }, asked)
      continue
    }
    const before = segment.records
    runNow(segment.take(readLineText(text)), jobs)
    if (segment.ended) break
    if (segment.records > before && segment.records % PROGRESS_RECORDS === 0) onProgress?.(segment.records)
  }
  if (whole === undefined || segment === undefined) return emptyExport
  return runNow(whole.join(segment.result()), jobs) ?? runNow(whole.end(), jobs)
}
