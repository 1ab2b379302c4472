import type { Policy } from '../auth/row-policy.js'
import type { RecordAction } from '../strand/proposal.js'
import type { Zone } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'
import type { Author, Mutation, Vote } from './proposal-messages.js'

/*
 * How exports are taken in: a reader of the pool checks their records, the shard of the agent commits them
 * (docs/adr/0022-import.md).
 */

/** What a record of a mutation tells beside it. */
interface Mutated {
  /** Seq of the proposal that led to it. */
  mutatedBy?: number
}

/** What a record of the server tells, which the shard keeps in its tables too. */
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

/** A effect by the seq of its record. */
export type EffectAt = { seq: number } & Effect

/** Records of an export that were checked: links, hashes, signatures, bodies. The last one is signed. */
export interface CheckedRecords {
  /** As a block of the store holds them, without agent number and key index. */
  chunk: Uint8Array
  firstSeq: number
  lastSeq: number
  /** Hash of the last one. */
  lastHash: string
  /** The key in force at the first one. */
  key: string
  effects: EffectAt[]
  /** Body commitments of those that are erased, 64 hex digits, by seq. */
  commitments: [seq: number, commitment: string][]
}

/**
 * Takes checked records in behind the head of their strand, which is made when they begin with its genesis record; what
 * is there already is passed over. From the first one that is new the agent takes no writes. Answered by `imported`.
 */
interface StrandImport extends CheckedRecords {
  kind: 'strandImport'
  agent: string
  strand: string
  /** Whether the caller may go on with a strand that takes writes (`admin:*`). */
  admin: boolean
  /** The audit strand tells of this import already; without that nothing is changed: `importUntold`. */
  told: boolean
  options: WriteOptions
}

/** Ends an import at the last record of its export: the agent takes writes again. Answered by `imported`. */
interface StrandImportEnd {
  kind: 'strandImportEnd'
  agent: string
  strand: string
  lastSeq: number
  /** The seed of the key in force, where neither the master seed nor the agent's row leads to it; claimed before. */
  seed?: Uint8Array
  /** More of the strand is to come: the agent still takes no writes. */
  hold: boolean
  /** As in `StrandImport`. */
  told: boolean
  options: WriteOptions
}

/** Everything about imports that a shard can be asked. */
export type ImportCommand = StrandImport | StrandImportEnd

/** The import would change something, and the audit strand is to tell of it first. */
export interface ImportUntoldOutcome {
  kind: 'importUntold'
}

/** Where the strand stands. */
export interface ImportedOutcome {
  kind: 'imported'
  /** Records that were new. */
  imported: number
  headSeq: number
  headHash: string
  /** Whether the agent takes writes. */
  open: boolean
}
