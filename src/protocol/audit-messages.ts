import type { WriteOptions } from './command-options.js'

/* What the server records about itself on its audit strand (docs/FORMAT.md, The audit strand). */

/** A record for the audit strand: the type and the members of its body. */
export type AuditEntry =
  | { type: 'sys/imported'; body: ImportTold }
  | { type: 'sys/restored'; body: RestoreTold }
  | { type: 'sys/loss_accepted'; body: LossAccepted }
  | { type: 'sys/license'; body: LicenseTold }

/** An import, before its first change and at its end. */
export interface ImportTold {
  state: 'begun' | 'ended'
  /** Seq of the record about its beginning. */
  begun_seq?: number
  agent: string
  strand: string
  principal: string
  /** As in the manifest of the export. */
  from_seq: number
  to_seq: number
  /** Records that were new, at its end. */
  imported?: number
  /** Whether the agent takes writes, at its end. */
  open?: boolean
  /** The code that it was refused with. */
  code?: string
}

/** The restore that this data directory was made by. */
export interface RestoreTold {
  restored_at_ms: number
  /** When the backup was begun. */
  backup_made_at_ms: number
  /** Program version of the backup. */
  backup_version: string
  /** RFC 6962 root over the chain heads of the backup. */
  heads_root: string
}

/** Durable segments of a cluster's log that are missing, which was accepted at a node. */
export interface LossAccepted {
  accepted_at_ms: number
  node: string
  shard: number
  /** The first segment that is missing. */
  from_segment: number
  /** The last one that the node knew to be durable. */
  known: SegmentTold
  /** What the log had of that number, or its last segment; null where it had none. */
  there: SegmentTold | null
}

interface SegmentTold {
  segment: number
  hash: string
}

/** The license that the add-on uses from now on; never the license key. */
export interface LicenseTold {
  state: 'valid' | 'expired' | 'invalid' | 'absent'
  licensee: string | null
  expires_at_ms: number | null
  features: string[]
  /** Public key of the license authority. */
  authority: string | null
}

/** Makes the server's audit strand if there is none. Answered by `done`. */
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
  /** Writes only if the last such record of this type says something else. */
  changesOnly: boolean
  options: WriteOptions
}

/** Every command about the audit strand. */
export type AuditCommand = AuditOpen | AuditAppend

/** The record is written, or was not needed. */
export interface AuditedOutcome {
  kind: 'audited'
  /** Seq of the record. */
  seq?: number
}
