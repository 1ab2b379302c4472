/** First line of an export (docs/FORMAT.md, Export). */
export interface Manifest {
  agent: string
  /** Hash of the strand's genesis record, 64 hex digits. */
  strand: string
  /** The key in force at the first record of the export, where checking begins. */
  publicKey: string
  fromSeq: number
  /** Seq of the last record of the export. That record is signed, never sealed. */
  toSeq: number
  /** Records of the whole strand but genesis, when the export began. */
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
  /** The body exists, but whoever the export was made for may not read it. */
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
  /**
   * Records of the whole strand but genesis, when the export ended: if it is `toSeq`, every erasure of a record in the
   * export is in it too. Exports of servers before 0.5 do not have it.
   */
  recordCount?: number
}

export const exportFormat = 'strand-export/v1'

// Lines are returned without their LF. The platform escapes texts; hex and numbers need no escaping.

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
  const { chainHead, records, checkpoint, recordCount } = trailer
  const note = checkpoint === undefined ? 'null' : JSON.stringify(checkpoint)
  const count = recordCount === undefined ? '' : `,"record_count":${recordCount}`
  return `{"chain_head":"${chainHead}","records":${records},"checkpoint":${note}${count}}`
}
