import { placeOf } from '../chain-check.js'
import {
  ExportCheck,
  type ExportFault,
  type ExportOptions,
  type VerifiedExport,
  emptyExport,
  readFirstLine,
} from '../export-check.js'
import { runSync } from '../job.js'
import { readLineText } from '../record.js'
import { SegmentCheck } from '../segment-check.js'
import { jobs } from './jobs.js'

/** Records between two calls of `onProgress`. */
const PROGRESS_RECORDS = 1_000

/**
 * Verifies an export from its lines only (docs/FORMAT.md, Checking an export): every link, hash, body,
 * signature and seal, key rotations, the trailer and its checkpoint. Memory does not grow with the strand.
 *
 * `publicKey` is the trusted key, which must have signed a record of the export, as the first key or after a
 * rotation. Its signature vouches for earlier records, and the rotations vouch for later ones. Without a key,
 * the export is only checked against itself. For the other options, see `ExportOptions`, `ChainOptions` and
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
  const { publicKey: trustedKey, onProgress, ...others } = options
  const exportOptions: ExportOptions = { trustedKey, ...others }
  let whole: ExportCheck | undefined
  let segment: SegmentCheck | undefined
  for await (const text of lines) {
    if (whole === undefined || segment === undefined) {
      const manifest = readFirstLine(text, exportOptions)
      if ('ok' in manifest) return manifest
      whole = new ExportCheck(manifest, exportOptions)
      segment = new SegmentCheck(manifest, { place: placeOf(manifest) }, exportOptions)
      continue
    }
    const before = segment.records
    runSync(segment.take(readLineText(text)), jobs)
    if (segment.ended) break
    if (segment.records > before && segment.records % PROGRESS_RECORDS === 0) onProgress?.(segment.records)
  }
  if (whole === undefined || segment === undefined) return emptyExport
  return runSync(whole.join(segment.result()), jobs) ?? runSync(whole.end(), jobs)
}
