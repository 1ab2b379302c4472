import { exportFormat, type Manifest, type RecordLine, type Trailer } from '../strand/strand-export.js'
import { isCount, isHex } from './hex.js'
import { readLineMembers } from './strict-json.js'

/** Bytes of a line without its LF: enough for the largest body with every byte escaped. */
export const LINE_BYTES_MAX = 8 * 1_048_576

/** Parses a first line, with or without a byte order mark; undefined if it is not a manifest. */
export function parseManifest(line: string): Manifest | undefined {
  const members = readLineMembers(line.startsWith('\ufeff') ? line.slice(1) : line)
  if (members?.['format'] !== exportFormat) return undefined
  const { agent, strand, public_key: publicKey, from_seq: fromSeq, to_seq: toSeq } = members
  const recordCount = members['record_count']
  if (typeof agent !== 'string' || !isHex(strand, 64) || !isHex(publicKey, 64)) return undefined
  if (!isCount(fromSeq) || !isCount(toSeq) || !isCount(recordCount)) return undefined
  return { agent, strand, publicKey, fromSeq, toSeq, recordCount }
}

/** Whether a line is blank. Editors and mail programs append such lines to a file. */
export function isBlankLine(line: string): boolean {
  return /^[ \t\r]*$/.test(line)
}

/** Parses any line except the first; undefined if it is neither a record nor a trailer. */
export function parseLine(line: string): { record: RecordLine } | { trailer: Trailer } | undefined {
  const members = readLineMembers(line)
  if (members === undefined) return undefined
  const found = typeof members['h'] === 'string' ? readRecord(members['h'], members) : undefined
  if (found !== undefined) return { record: found }
  const trailer = readTrailer(members)
  return trailer && { trailer }
}

function readTrailer(members: Record<string, unknown>): Trailer | undefined {
  const { chain_head: chainHead, records, checkpoint, record_count: endCount } = members
  if (!isHex(chainHead, 64) || !isCount(records)) return undefined
  if (checkpoint !== null && typeof checkpoint !== 'string') return undefined
  if (endCount !== undefined && !isCount(endCount)) return undefined
  const trailer = { chainHead, records, checkpoint: checkpoint ?? undefined }
  return endCount === undefined ? trailer : { ...trailer, recordCount: endCount }
}

function readRecord(h: string, members: Record<string, unknown>): RecordLine | undefined {
  const { sig, sealed_by: sealedBy, salt, body, erased, withheld } = members
  // A record is either signed or sealed, and either complete, erased or withheld.
  if (sig === undefined ? !isCount(sealedBy) : !isHex(sig, 128) || sealedBy !== undefined) return undefined
  const seal = isHex(sig, 128) ? { sig } : isCount(sealedBy) ? { sealedBy } : {}
  if (erased !== undefined || withheld !== undefined) {
    if (salt !== undefined || body !== undefined) return undefined
    if (erased === true && withheld === undefined) return { h, ...seal }
    return withheld === true && erased === undefined ? { h, ...seal, withheld } : undefined
  }
  if (!isHex(salt, 32) || typeof body !== 'string') return undefined
  return { h, ...seal, salt, body }
}
