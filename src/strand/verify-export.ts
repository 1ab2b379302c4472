import { placeOf } from './chain-check.js'
import { ExportCheck, type ExportFault, type VerifiedExport } from './export-check.js'
import { readLineText } from './line-reader.js'
import { SegmentCheck } from './segment-check.js'
import { parseManifest } from './strand-export.js'

export type { ExportFault, VerifiedExport }

/** How often `onProgress` is told. */
const PROGRESS_RECORDS = 1_000

/**
 * Checks an export from nothing but its lines (contract.md 5, 8): every link, hash, body, signature and seal, key
 * rotations, the trailer and its checkpoint. Memory does not grow with the strand.
 *
 * `publicKey` is what the caller trusts: it must have signed a record of the export, as the first key or as one that
 * a rotation led to. What that signature covers is vouched for by it, what follows by the rotations.
 * Without it the export is only checked against itself. `fast` is that of `ChainOptions`, `watch` of `SegmentOptions`.
 */
export async function verifyExport(
  lines: AsyncIterable<string> | Iterable<string>,
  options: {
    publicKey?: string
    fast?: boolean
    watch?: readonly number[]
    onProgress?: (records: number) => void
  } = {},
): Promise<VerifiedExport | ExportFault> {
  const { publicKey: trustedKey, onProgress, ...how } = options
  let whole: ExportCheck | undefined
  let segment: SegmentCheck | undefined
  for await (const text of lines) {
    if (whole === undefined || segment === undefined) {
      const manifest = parseManifest(text)
      if (manifest === undefined) return noManifest
      whole = new ExportCheck(manifest, { trustedKey, ...how })
      segment = new SegmentCheck(manifest, placeOf(manifest), { trustedKey, ...how })
      continue
    }
    const before = segment.records
    segment.take(readLineText(text))
    if (segment.ended) break
    if (segment.records > before && segment.records % PROGRESS_RECORDS === 0) onProgress?.(segment.records)
  }
  if (whole === undefined || segment === undefined) return emptyExport
  return whole.join(segment.result()) ?? whole.end()
}

/** Found in an export whose first line is no manifest. */
export const noManifest: ExportFault = {
  ok: false,
  line: 1,
  reason: 'The first line is no strand-export/v1 manifest',
}

/** Found in an export without a line. */
export const emptyExport: ExportFault = { ok: false, line: 0, reason: 'The export is empty' }
