import type { Policy } from '../auth/row-policy.js'
import type { RecordAction } from '../strand/proposal.js'
import type { Zone } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'
import type { Author, Mutation, Vote } from './proposal-messages.js'

/*
 * Messages of imports: a reader thread checks the records of an export, and the shard of the agent commits
 * them (docs/adr/0022-import.md).
 */

interface Mutated {
  /** The seq of the proposal that caused the mutation. */
  mutatedBy?: number
}

/** The effect of a system record on the tables of the shard. */
export type Effect =
  | { kind: 'genesis'; zone: Zone; createdAtMs: number }
  | ({ kind: 'record'; action: RecordAction; target: string; targetSeq: number } & Mutated)
  | ({ kind: 'zone'; zone: Zone } & Mutated)
  | ({ kind: 'policies'; policies: Policy[] } & Mutated)
  | ({ kind: 'key'; publicKey: string } & Mutated)
  | ({ kind: 'edge'; dst: string; edgeType: string; live: boolean; weight: number } & Mutated)
  | {
      kind: 'proposal'
      mutation: Mutation
      zone: Zone
      proposer: string
      line?: string
      effectiveAtMs?: number
      expiresAtMs: number
    }
  | ({ kind: 'vote'; proposal: string; proposalSeq: number; vote: Vote['vote'] } & Author)
  | {
      kind: 'applied'
      proposal: string
      proposalSeq: number
      state: 'applied' | 'rejected' | 'cancelled' | 'expired'
      reason?: string
    }

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

/**
 * Appends checked records to their strand, which is created if they begin with its genesis record. Existing
 * records are skipped. From the first new record on, the agent takes no writes. Answered by `imported`.
 */
interface StrandImport extends CheckedRecords {
  kind: 'strandImport'
  agent: string
  strand: string
  /** Whether the caller may append to a strand that takes writes (`admin:*`). */
  admin: boolean
  /** The agents to which the caller's key is limited; empty means no limit. */
  agents: readonly string[]
  /** Whether the audit strand has recorded the import; otherwise nothing changes (`auditRequired`). */
  audited: boolean
  options: WriteOptions
}

/** Ends an import at the last record of its export: the agent takes writes again. Answered by `imported`. */
interface StrandImportEnd {
  kind: 'strandImportEnd'
  agent: string
  strand: string
  lastSeq: number
  /** The seed of the key in force, if it is not derivable from the master seed or stored. Claimed before. */
  seed?: Uint8Array
  /** True if more records will follow, so that the agent still takes no writes. */
  hold: boolean
  /** As in `StrandImport`. */
  audited: boolean
  options: WriteOptions
}

export type ImportCommand = StrandImport | StrandImportEnd

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
