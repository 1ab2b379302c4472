import type { Policy } from '../auth/row-policy.js'
import type { RecordAction } from '../strand/proposal.js'
import type { Zone } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'
import type { Author, Mutation, Vote } from './proposal-messages.js'

/*
 * How exports are imported: a reader of the pool checks their records, the shard of the agent commits them
 * (docs/adr/0022-import.md).
 */

/** What a record of a mutation says besides it. */
interface Mutated {
  /** Seq of the proposal that led to it. */
  mutatedBy?: number
}

/** The effect of a server's record, which the shard keeps in its tables too. */
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

/** An effect with the seq of its record. */
export type EffectAt = { seq: number } & Effect

/** Records of an export that were checked: links, hashes, signatures, bodies. The last one is signed. */
export interface CheckedRecords {
  /** In the form of a store's block, without agent number and key index. */
  chunk: Uint8Array
  firstSeq: number
  lastSeq: number
  /** Hash of the last one. */
  lastHash: string
  /** The key in force at the first one. */
  key: string
  effects: EffectAt[]
  /** Body commitments of the erased ones, 64 hex digits, by seq. */
  commitments: [seq: number, commitment: string][]
}

/**
 * Appends checked records after the head of their strand, which is made when they begin with its genesis record;
 * records that exist already are skipped. From the first new record on, the agent takes no writes. Answered by
 * `imported`.
 */
interface StrandImport extends CheckedRecords {
  kind: 'strandImport'
  agent: string
  strand: string
  /** Whether the caller may continue a strand that takes writes (`admin:*`). */
  admin: boolean
  /** The agents that the caller's key is limited to; empty means no limit. */
  agents: readonly string[]
  /** Whether the audit strand has recorded this import; without that nothing is changed: `importUntold`. */
  told: boolean
  options: WriteOptions
}

/** Ends an import at the last record of its export: the agent takes writes again. Answered by `imported`. */
interface StrandImportEnd {
  kind: 'strandImportEnd'
  agent: string
  strand: string
  lastSeq: number
  /**
   * The seed of the key in force, where it follows neither from the master seed nor from the agent's row; it was
   * claimed before.
   */
  seed?: Uint8Array
  /** More of the strand is to come: the agent still takes no writes. */
  hold: boolean
  /** As in `StrandImport`. */
  told: boolean
  options: WriteOptions
}

/** Everything about imports that a shard can be asked. */
export type ImportCommand = StrandImport | StrandImportEnd

/** The import would change something, and the audit strand has to record it first. */
export interface ImportUntoldOutcome {
  kind: 'importUntold'
}

/** The state of the strand. */
export interface ImportedOutcome {
  kind: 'imported'
  /** Records that were new. */
  imported: number
  headSeq: number
  headHash: string
  /** Whether the agent takes writes. */
  open: boolean
}
