import type { RecordAction } from '../strand/proposal.js'
import type { Zone } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'
import type { Author } from './proposal-messages.js'

/*
 * Messages of imports: a reader thread checks the records of an export, and the shard of the agent commits
 * them (docs/adr/0022-import.md).
 */

/** The effect of an imported system record on the tables of the shard. */
export type Effect =
  | { kind: 'genesis'; zone: Zone; createdAtMs: number }
  | { kind: 'record'; action: RecordAction; target: string; targetSeq: number }
  | { kind: 'zone'; zone: Zone }
  | { kind: 'key'; publicKey: string }
  | { kind: 'edge'; dst: string; edgeType: string; live: boolean; weight: number }

export type EffectAt = { seq: number } & Effect

/**
 * Checked records of an export: links, hashes, signatures and bodies are valid, and the last record is
 * signed.
 */
export interface CheckedRecords {
  /** The records in the form of a store's block, without agent number and key index. */
  chunk: Uint8Array
  firstSeq: number
  lastSeq: number
  lastHash: string
  /** The key in force at the first record. */
  key: string
  effects: EffectAt[]
  /** Body commitments of erased records, 64 hex digits, by seq. */
  commitments: [seq: number, commitment: string][]
}

/** How an import ends with the last record of its export. */
export interface ImportEnd {
  lastSeq: number
  /** The key in force after it, with which the server signs `sys/imported`. */
  publicKey: string
  /** The seed of the key, if it is not derivable from the master seed or stored. Claimed before. */
  seed?: Uint8Array
}

/**
 * Appends checked records to their strand, which is created if they begin with its genesis record. Existing
 * records are skipped. The agent takes no writes until the part that ends the import, whose transaction also
 * has the record of the import. Answered by `imported`.
 */
export interface StrandImport extends CheckedRecords, Author {
  kind: 'strandImport'
  agent: string
  strand: string
  /** Absent if more records of the strand will follow after this export. */
  end?: ImportEnd
  /** The first seq of the export: the targets of its records from there on are checked. */
  fromSeq: number
  /** Whether the audit strand has recorded the import; otherwise nothing changes (`auditRequired`). */
  audited: boolean
  options: WriteOptions
}

/** The audit strand must record the import before it changes anything. */
export interface AuditRequiredOutcome {
  kind: 'auditRequired'
}

export interface ImportedOutcome {
  kind: 'imported'
  imported: number
  headSeq: number
  headHash: string
  open: boolean
}

export type ImportOutcome = ImportedOutcome | AuditRequiredOutcome
