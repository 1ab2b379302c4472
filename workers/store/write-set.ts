import type { ApiKeyRow } from '../../src/protocol/api-key-messages.js'
import type { Outcome } from '../../src/protocol/messages.js'
import type { OrganismRow } from '../../src/protocol/organism-messages.js'
import type { LoggedHead } from '../../src/strand/server-log.js'
import type { Agent, AgentRow } from './tables/agent.js'
import type { PendingAuthRow, PendingRevocation } from './tables/auth-table.js'
import type { EdgeChange } from './tables/edges.js'
import type { PendingErasure, SeqRange } from './tables/erasures.js'
import type { PastProposal } from './tables/past-proposals.js'
import type { PendingProposal } from './tables/proposals.js'
import type { StoredRecord } from './tables/record-codec.js'
import type { ZoneChange } from './tables/zone-changes.js'

/** What one transaction writes to disk, by table. */
export interface WriteSet {
  readonly records: readonly PendingRecord[]
  readonly imported: readonly ImportedRecord[]
  readonly newAgents: ReadonlyMap<string, AgentRow>
  /** Changes of existing agents, by name. */
  readonly agentChanges: ReadonlyMap<string, AgentChange>
  /** New states of proposals, by agent number and seq. */
  readonly proposals: ReadonlyMap<string, PendingProposal>
  /** Proposals whose rows are replaced by references to their records. */
  readonly pastProposals: readonly PastProposal[]
  readonly erasures: readonly PendingErasure[]
  readonly zoneChanges: readonly ZoneChange[]
  /** Changes of each edge, in order. */
  readonly edges: ReadonlyMap<string, EdgeChange[]>
  /** Agents whose state in memory is ahead of the store. */
  readonly touched: ReadonlyMap<string, Agent>
  readonly mutations: readonly PendingMutation[]
  readonly answers: ReadonlyMap<string, PendingAnswer>
  /** Names of agents by their public keys. */
  readonly publicKeys: ReadonlyMap<string, string>
  /** API keys by id; undefined deletes a key. */
  readonly apiKeys: ReadonlyMap<string, ApiKeyRow | undefined>
  /** The content of audit records that are written only when it changes, by type. */
  readonly lastReported: ReadonlyMap<string, string>
  readonly organisms: ReadonlyMap<string, OrganismRow>
  readonly authRows: ReadonlyMap<string, PendingAuthRow>
  readonly revocations: readonly PendingRevocation[]
  /** The heads in records of the server log, by the seq of the record. */
  readonly loggedHeads: ReadonlyMap<number, readonly LoggedHead[]>
  /** Sealed mails by key; undefined removes a mail from the outbox. */
  readonly mails: ReadonlyMap<string, Buffer | undefined>
}

/** A record that is accepted but not on disk yet. */
export interface PendingRecord extends StoredRecord {
  agent: Agent
  /** It is not signed until the group is sealed, when the signature of a later record may cover it. */
  awaitsSeal: boolean
  /** Body bytes of the strand up to this record. */
  strandBytes: number
}

/** A record that was written by another server and is imported unchanged (docs/adr/0022-import.md). */
export interface ImportedRecord extends StoredRecord {
  imported: true
  agent: Agent
  /** Body bytes of the strand up to this record, without bodies that were erased before the import. */
  strandBytes: number
  /** The body commitment, 64 hex digits, of a record that was erased before the import. */
  commitment?: string
}

/** A deletion or restoration that is accepted but not on disk yet. */
export interface PendingMutation {
  agentNo: number
  targetSeq: number
  mutationSeq: number
  deleted: boolean
}

/** The members of an agent's row that can change. */
export type AgentChange = Pick<
  Partial<AgentRow>,
  | 'zone'
  | 'policies'
  | 'policiesBy'
  | 'publicKey'
  | 'sealedSeed'
  | 'retiredKeys'
  | 'importing'
  | 'importedRecords'
>

/** An answer to store under its Idempotency-Key. */
export interface PendingAnswer {
  key: Buffer
  digest: string
  content: string | undefined
  placement: number
  seqs: SeqRange | undefined
  outcome: () => Outcome
  storedOutcome: () => IdempotentOutcome
}

/** An answer as it is stored: the outcome itself or, if it contains a secret, its sealed JSON in base64. */
export type IdempotentOutcome = Outcome | { kind: 'sealed'; box: string }
