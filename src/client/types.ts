/** What may happen to an agent's records once they are written (spec.md, Zones). */
export type Zone = 'immutable_core' | 'protected' | 'governed' | 'free'

/** Options that every call takes. */
export interface CallOptions {
  /** Ends the call; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined
}

/** Options of a call that changes something. */
export interface ChangeOptions extends CallOptions {
  /** Repeating a key within 24 h answers the first answer again. Made anew for each call unless given. */
  idempotencyKey?: string | undefined
}

/** Options of a write. */
export interface WriteOptions extends ChangeOptions {
  /** Record type, `[a-z0-9_./-]{1,64}`; `record` unless given. */
  type?: string | undefined
  /** Write only while the chain head is this hash; else 412 `head_mismatch`. */
  ifMatch?: string | undefined
}

/** Options of a batch. */
export interface BatchOptions extends WriteOptions {
  /** All or none (the server's default); false writes the good ones and names the bad ones. */
  atomic?: boolean | undefined
}

/** Answer to a write (contract.md 5). `hash` has the prefix `sha256:`, the other hashes are bare hex. */
export interface WriteResponse {
  record_id: string
  id: string
  content_hash: string
  hash: string
  parent_hash: string
  timestamp_hlc: string
  seq: number
  /** Hex Ed25519 signature; null where a later record of the group seals this one. */
  signature: string | null
  agent: string
  /** `seq` of the record whose signature covers this one. */
  sealed_by?: number
}

/** A batch item that was refused while others were written. */
export interface BatchFailure {
  error: { code: string; detail: string }
}

/** One place in the results of a batch that is not atomic. */
export type BatchItem = WriteResponse | BatchFailure

/** A record as the server shows it (contract.md 5). */
export interface RecordView<T = Record<string, unknown>> {
  record_id: string
  content_hash: string
  parent_hash: string
  seq: number
  timestamp_hlc: string
  type: string
  /** The record's body; null once erased. */
  payload: T
  /** The same object as `payload`; added by this client. */
  data: T
  signature: string | null
  sealed_by?: number
  public_key: string
  deleted: boolean
  erased: boolean
}

/** A record in a query's answer (spec.md, Data resources). */
export type NucleotideRecord<T = Record<string, unknown>> = RecordView<T>

/** Compares a field of the body, a dotted path, with a literal of the same JSON type. */
export interface WhereCondition {
  field: string
  op: 'eq' | 'ne' | 'in' | 'lt' | 'lte' | 'gt' | 'gte' | 'exists'
  value?: unknown
}

/** What every query body takes beside its own fields. */
export interface QueryFilter {
  where?: WhereCondition[]
  /** Exact types, or prefixes as `auth/*`. */
  types?: string[]
  cursor?: string
  /** Rows in one page, at most 1,000. */
  limit?: number
  order?: 'asc' | 'desc'
}

/** Query body (spec.md, Query bodies). Times: a number is Unix milliseconds, a string an HLC or ISO 8601. */
export type QueryBody =
  | ({ type: 'latest' } & QueryFilter)
  | ({ type: 'time_range'; from_ts?: number | string; to_ts?: number | string } & QueryFilter)
  | ({ type: 'hash'; hash: string } & QueryFilter)
  | ({ type: 'chain_head' } & QueryFilter)

/** Head of a strand. `record_count` leaves out the genesis record. */
export interface ChainHeadResponse {
  agent_id: string
  chain_head: string
  hash: string
  seq: number
  record_count: number
  timestamp_hlc: string
  signature: string | null
}

/** Answer to a query; of type `chain_head` it carries the head's fields. */
export interface SaqlQueryResult<T = Record<string, unknown>> extends Partial<ChainHeadResponse> {
  records: NucleotideRecord<T>[]
  next_cursor: string | null
}

/** State of an agent. */
export interface AgentStatusResponse {
  agent_id: string
  zone: Zone
  record_count: number
  chain_head: string
  public_key: string
  strand: string
  timestamp_hlc: string
  /** Bytes that the agent's records take. */
  bytes: number
  created_at_ms: number
}

/** A newly made agent. */
export interface AgentResponse {
  agent_id: string
  name: string
  zone: Zone
  public_key: string
  strand: string
  created_at_ms: number
}

/** Names of agents; `total` counts all that match, on this page or not. */
export interface AgentListResponse {
  agents: string[]
  total: number
}

/** A deletion or restoration that took effect at once. */
export interface AppliedMutation {
  record_id: string
  state: string
  seq: number
}

/** A deletion or restoration that waits for its time or for approval, as the agent's zone says. */
export interface ProposedMutation {
  proposal_id: string
  state: string
  effective_at_ms: number | null
}

/** Answer to a deletion or restoration. */
export type MutationResponse = AppliedMutation | ProposedMutation

/** A refused line of an ingest; `line` counts from 1. */
export interface IngestFault {
  line: number
  code: string
  detail: string
}

/** What became of an ingest of many records. */
export interface IngestSummary {
  accepted: number
  rejected: number
  errors: IngestFault[]
  first_seq: number | null
  last_seq: number | null
  chain_head: string
}

/** RFC 6962 inclusion proof of one record, with the checkpoint it leads to. */
export interface ProofResponse {
  agent: string
  hash: string
  seq: number
  tree_size: number
  root: string
  path: string[]
  checkpoint: string
}

/** A committed record as streams tell of it (contract.md 5, Streams). */
export interface StreamEvent<T = Record<string, unknown>> {
  record_id: string
  payload: T
  agent: string
  seq: number
  type: string
  timestamp_hlc: string
  content_hash: string
  parent_hash: string
}
