import { headerJson, type RecordHeader } from './header.js'

/** The first line of an export (docs/FORMAT.md, Export). */
export interface Manifest {
  agent: string
  /** Hash of the genesis record of the strand, 64 hex digits. */
  strand: string
  /** The key in force at the first record of the export, where verification begins. */
  publicKey: string
  fromSeq: number
  /** Seq of the last record of the export. That record is signed, never sealed. */
  toSeq: number
  /** Records of the whole strand except genesis when the export began. */
  recordCount: number
}

export interface RecordLine extends RecordContent {
  /** The exact text of the header. */
  h: string
}

/**
 * A record without its header. A sealed record has `sealedBy` instead of `sig`; an erased or withheld record
 * has no salt and body.
 */
export interface RecordContent {
  /** Signature, 128 hex digits. */
  sig?: string | undefined
  /** Seq of the signed record that covers this one. */
  sealedBy?: number | undefined
  /** 32 hex digits. */
  salt?: string | undefined
  /** The exact text of the canonical body. */
  body?: string | undefined
  /** The body exists, but the principal of the export may not read it. */
  withheld?: true
}

/** The last line of an export. */
export interface Trailer {
  /** Hash of the last record of the export, 64 hex digits. */
  chainHead: string
  records: number
  /**
   * Signed note over the first `toSeq` + 1 records by the key in force after the last of them. Undefined if
   * the server no longer has that key because the export ends before a later rotation.
   */
  checkpoint: string | undefined
  /**
   * Records of the whole strand except genesis when the export ended. If it equals `toSeq`, the export
   * includes all erasures of its records. Absent from exports of servers before 0.5.
   */
  recordCount?: number
}

export const exportFormat = 'strand-export/v1'

// Lines have no LF. Only texts need escaping, not hex digits and numbers.

/** Renders the first line. */
export function manifestLine(manifest: Manifest): string {
  const { agent, strand, publicKey, fromSeq, toSeq, recordCount } = manifest
  return (
    `{"format":"${exportFormat}","agent":${JSON.stringify(agent)},"strand":"${strand}","public_key":"${publicKey}",` +
    `"from_seq":${fromSeq},"to_seq":${toSeq},"record_count":${recordCount}}`
  )
}

/** Renders the line of a record; faster if its header is not text yet. */
export function recordLine(record: RecordContent & { h: string | RecordHeader }): string {
  const { h, sig, sealedBy } = record
  const header = typeof h === 'string' ? JSON.stringify(h) : headerJson(h)
  const sealing = sig === undefined ? `,"sealed_by":${sealedBy}` : `,"sig":"${sig}"`
  return `{"h":${header}${sealing}${contentOf(record)}`
}

function contentOf({ salt, body, withheld }: RecordContent): string {
  if (withheld === true) return ',"withheld":true}'
  return body === undefined ? ',"erased":true}' : `,"salt":"${salt}","body":${JSON.stringify(body)}}`
}

/** Renders the last line. */
export function trailerLine(trailer: Trailer): string {
  const { chainHead, records, checkpoint, recordCount } = trailer
  const note = checkpoint === undefined ? 'null' : JSON.stringify(checkpoint)
  const count = recordCount === undefined ? '' : `,"record_count":${recordCount}`
  return `{"chain_head":"${chainHead}","records":${records},"checkpoint":${note}${count}}`
}
