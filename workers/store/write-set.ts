import type { Agent, AgentRow } from './tables/agent.js'
import type { StoredRecord } from './tables/record-codec.js'
import { Changes } from './table-spec.js'

/** What one transaction writes to disk. */
export class WriteSet {
  readonly records: PendingRecord[] = []
  readonly imported: ImportedRecord[] = []
  readonly newAgents = new Map<string, AgentRow>()
  /** Changes of existing agents, by name. */
  readonly agentChanges = new Map<string, AgentChange>()
  /** Agents whose state in memory is ahead of the store. */
  readonly touched = new Map<string, Agent>()
  /** All other rows, and what is reported of them to the fronts. */
  readonly changes = new Changes()
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
