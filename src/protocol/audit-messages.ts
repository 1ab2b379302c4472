import type { WriteOptions } from './command-options.js'

/*
 * Messages about the audit strand, on which the server records its own operations (docs/FORMAT.md, The audit
 * strand).
 */

/** A record of the audit strand: its type and body. */
export type AuditEntry =
  | { type: 'sys/imported'; body: ImportAudit }
  | { type: 'sys/restored'; body: RestoreAudit }
  | { type: 'sys/loss_accepted'; body: LossAccepted }
  | { type: 'sys/license'; body: LicenseAudit }

/** An import: one record before its first change, and one at its end. */
export interface ImportAudit {
  state: 'begun' | 'ended'
  /** The seq of the record of its beginning. */
  begun_seq?: number
  agent: string
  strand: string
  principal: string
  /** As in the manifest of the export. */
  from_seq: number
  to_seq: number
  /** At its end: the number of new records. */
  imported?: number
  /** At its end: whether the agent takes writes. */
  open?: boolean
  code?: string
}

/** The restore that created this data directory. */
export interface RestoreAudit {
  restored_at_ms: number
  backup_made_at_ms: number
  backup_version: string
  /** The RFC 6962 root over the chain heads of the backup. */
  heads_root: string
}

/** A loss of durable segments of the cluster log, which an operator accepted at a node. */
export interface LossAccepted {
  accepted_at_ms: number
  node: string
  shard: number
  /** The first missing segment. */
  from_segment: number
  /** The last segment that the node knew to be durable. */
  known: SegmentRef
  /** The segment of that number in the log, or the last one; null for an empty log. */
  there: SegmentRef | null
}

interface SegmentRef {
  segment: number
  hash: string
}

/** The license that the add-on uses from now on. It never contains the license key. */
export interface LicenseAudit {
  state: 'valid' | 'expired' | 'invalid' | 'absent'
  licensee: string | null
  expires_at_ms: number | null
  features: string[]
  authority: string | null
}

/** Creates the audit strand if it does not exist. Answered by `done`. */
interface AuditOpen {
  kind: 'auditOpen'
  agent: string
  options: WriteOptions
}

/** Appends a record to the audit strand. Answered by `audited`. */
interface AuditAppend {
  kind: 'auditAppend'
  agent: string
  entry: AuditEntry
  /** Appends only if the last record of this type differs. */
  changesOnly: boolean
  options: WriteOptions
}

export type AuditCommand = AuditOpen | AuditAppend

export interface AuditedOutcome {
  kind: 'audited'
  /** The seq of the record, if one was appended. */
  seq?: number
}
