import { readJson } from './json.js'

/** A line is one object of texts and numbers. */
const LINE_DEPTH_MAX = 1

/** First line of an export (contract.md 5, `GET /v1/strand/export`). */
export interface Manifest {
  agent: string
  /** Hash of the strand's genesis record, 64 hex digits. */
  strand: string
  /** The key in force at the first record of the export, where checking begins. */
  publicKey: string
  fromSeq: number
  /** Seq of the last record of the export. That record is signed, never sealed. */
  toSeq: number
  /** Records of the whole strand but genesis, as the export began. */
  recordCount: number
}

/** One record. A sealed one has `sealedBy` in place of `sig`, an erased or withheld one neither salt nor body. */
export interface RecordLine {
  /** The header's exact text. */
  h: string
  /** Signature, 128 hex digits. */
  sig?: string | undefined
  /** Seq of the signed record that covers this one. */
  sealedBy?: number | undefined
  /** 32 hex digits. */
  salt?: string | undefined
  /** The canonical body's exact text. */
  body?: string | undefined
  /** The body is there, but not for whom the export was made. */
  withheld?: true
}

/** Last line of an export. */
export interface Trailer {
  /** Hash of the last record of the export, 64 hex digits. */
  chainHead: string
  /** Record lines of the export. */
  records: number
  /**
   * Signed note over the first `toSeq` + 1 records by the key in force after the last of them; undefined where the
   * server no longer holds that key, which is where an export ends before a later rotation.
   */
  checkpoint: string | undefined
}

export const exportFormat = 'strand-export/v1'

// Each line is given without its LF. Texts are escaped by the platform; hex and numbers need none.

/** Renders the first line. */
export function manifestLine(manifest: Manifest): string {
  const { agent, strand, publicKey, fromSeq, toSeq, recordCount } = manifest
  return (
    `{"format":"${exportFormat}","agent":${JSON.stringify(agent)},"strand":"${strand}","public_key":"${publicKey}",` +
    `"from_seq":${fromSeq},"to_seq":${toSeq},"record_count":${recordCount}}`
  )
}

/** Renders a record's line. */
export function recordLine(record: RecordLine): string {
  const sealing = record.sig === undefined ? `,"sealed_by":${record.sealedBy}` : `,"sig":"${record.sig}"`
  return `{"h":${JSON.stringify(record.h)}${sealing}${contentOf(record)}`
}

function contentOf({ salt, body, withheld }: RecordLine): string {
  if (withheld === true) return ',"withheld":true}'
  return body === undefined ? ',"erased":true}' : `,"salt":"${salt}","body":${JSON.stringify(body)}}`
}

/** Renders the last line. */
export function trailerLine(trailer: Trailer): string {
  const { chainHead, records, checkpoint } = trailer
  const note = checkpoint === undefined ? 'null' : JSON.stringify(checkpoint)
  return `{"chain_head":"${chainHead}","records":${records},"checkpoint":${note}}`
}

/** Reads a first line; undefined when it is none. */
export function parseManifest(line: string): Manifest | undefined {
  const members = parseMembers(line)
  if (members?.format !== exportFormat) return undefined
  const { agent, strand, public_key: publicKey, from_seq: fromSeq, to_seq: toSeq } = members
  const recordCount = members.record_count
  if (typeof agent !== 'string' || !isHex(strand, 64) || !isHex(publicKey, 64)) return undefined
  if (!isCount(fromSeq) || !isCount(toSeq) || !isCount(recordCount)) return undefined
  return { agent, strand, publicKey, fromSeq, toSeq, recordCount }
}

/** Reads any line but the first; undefined when it is neither a record nor a trailer. */
export function parseLine(line: string): { record: RecordLine } | { trailer: Trailer } | undefined {
  const members = parseMembers(line)
  if (members === undefined) return undefined
  const found = typeof members.h === 'string' ? readRecord(members.h, members) : undefined
  if (found !== undefined) return { record: found }
  const { chain_head: chainHead, records, checkpoint } = members
  if (!isHex(chainHead, 64) || !isCount(records)) return undefined
  if (checkpoint === null) return { trailer: { chainHead, records, checkpoint: undefined } }
  return typeof checkpoint === 'string' ? { trailer: { chainHead, records, checkpoint } } : undefined
}

function readRecord(h: string, members: Record<string, unknown>): RecordLine | undefined {
  const { sig, sealed_by: sealedBy, salt, body, erased, withheld } = members
  // Exactly one of signed and sealed, exactly one of whole, erased and withheld.
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

/** Strict, so that no line reads otherwise to another parser: a duplicate key, a lone surrogate. */
function parseMembers(line: string): Record<string, unknown> | undefined {
  const read = readJson(Buffer.from(line), LINE_DEPTH_MAX)
  return 'value' in read && isMembers(read.value) ? read.value : undefined
}

function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isHex(value: unknown, digits: number): value is string {
  return typeof value === 'string' && value.length === digits && /^[0-9a-f]*$/.test(value)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
