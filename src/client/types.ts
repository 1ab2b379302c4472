import type * as agents from '../wire/agents.js'
import type * as keys from '../wire/api-keys.js'
import type * as graph from '../wire/graph.js'
import type * as ingest from '../wire/ingest.js'
import type * as metrics from '../wire/metrics.js'
import type * as organisms from '../wire/organisms.js'
import type * as policies from '../wire/policies.js'
import type * as queries from '../wire/query.js'
import type * as proposals from '../wire/proposals.js'
import type * as records from '../wire/records.js'
import type * as serverLog from '../wire/server-log.js'
import type * as server from '../wire/server.js'
import type * as strand from '../wire/strand.js'

export type { WhereCondition }

/** Options that every call takes. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the reason of the signal. */
  signal?: AbortSignal | undefined
}

/** Options of a call that changes something. */
export interface ChangeOptions extends CallOptions {
  /**
   * A call with the same key within 24 h gets the first answer again. Each call has a new key by default. Up to
   * 255 visible ASCII characters, and blanks between them; encode other texts, as with encodeURIComponent.
   */
  idempotencyKey?: string | undefined
}

/** Options of a write. */
export interface WriteOptions extends ChangeOptions {
  /** Record type, `[a-z0-9_./-]{1,64}`; `record` by default. */
  type?: string | undefined
  /** Write only if the chain head is this hash; otherwise 412 `head_mismatch`. */
  ifMatch?: string | undefined
}

/** Options of a batch. */
export interface BatchOptions extends WriteOptions {
  /**
   * True (the server's default) writes all or none; false writes the valid records and returns the errors of
   * the others.
   */
  atomic?: boolean | undefined
}

/** A value with a time. */
export interface Dated {
  /** `timestamp_ms` as a date; added by this client. */
  timestamp: Date
}

/** Answer to a write. `hash` has the prefix `sha256:`, the other hashes are bare hex. */
export interface WriteResponse extends records.WriteResponse, Dated {}

/** A batch item that was refused while others were written. */
export type BatchFailure = Exclude<records.BatchWritten['results'][number], records.WriteResponse>

/** The result for one record of a batch that is not atomic: the written record, or the error. */
export type BatchItem = WriteResponse | BatchFailure

/** A record as read by its hash. */
export interface RecordView<T = Record<string, unknown>> extends Omit<records.RecordView, 'payload'>, Dated {
  /** The body of the record; null after it was erased. */
  payload: T | null
  /** The same object as `payload`; added by this client. */
  data: T | null
}

/** A record that was found by its hash; read it with `agent(record.agent).get(record.record_id)`. */
export type FoundRecord = records.RecordsFound['records'][number] & Dated

/** A record in the answer to a query, which contains no erased records. */
export interface NucleotideRecord<T = Record<string, unknown>> extends RecordView<T> {
  payload: T
  data: T
}

/** Query body. Times are Unix milliseconds, or an HLC or ISO 8601 text. `where` is checked against `T`. */
export type QueryBody<T = Record<string, unknown>> =
  | PagedQueryBody<T>
  | Exclude<queries.QueryBody, queries.LatestQuery | queries.TimeRangeQuery>

/** A query whose answer can have several pages. */
export type PagedQueryBody<T = Record<string, unknown>> =
  | Selecting<queries.LatestQuery, T>
  | Selecting<queries.TimeRangeQuery, T>

type Selecting<Q, T> = Omit<Q, 'where'> & {
  /** Conditions that a record must all meet. */
  where?: readonly WhereCondition<T>[]
}

/** Head of a strand. `record_count` does not include the genesis record. */
export interface ChainHeadResponse extends agents.ChainHead, Dated {}

/** Answer to a query; for type `chain_head`, it contains the fields of the head. */
export interface SaqlQueryResult<T = Record<string, unknown>> extends Partial<ChainHeadResponse> {
  records: NucleotideRecord<T>[]
  next_cursor: string | null
  /** Warnings about conditions that compare a number with a text, which never match. */
  warnings?: string[]
}

/** The principal and the permissions of a credential. */
export interface WhoAmIResponse extends keys.WhoAmI {}

/** Version, settings and state of a server. */
export interface ServerInfoResponse extends server.ServerInfo {}

/** The metrics of a server. */
export interface MetricsResponse extends metrics.MetricValues {}

/** State of an agent. */
export interface AgentStatusResponse extends agents.AgentStatus, Dated {}

/** The zone of an agent: how its written records may be changed (docs/ZONES.md). */
export type Zone = agents.AgentStatus['zone']

/** A scoped API key, without the secret. */
export type ApiKey = keys.ApiKeyPage['api_keys'][number]

/** One page of API keys. */
export interface ApiKeyPageResponse extends keys.ApiKeyPage {}

/** An API key to create. */
export interface NewApiKey extends keys.ApiKeyCreateBody {}

/**
 * A new API key with its secret, which is returned only here; a key that waits for approval has the id of its
 * proposal.
 */
export type ApiKeyMade = keys.ApiKeyCreated | keys.ApiKeyProposed

/** Answer to the deletion of an API key. */
export interface ApiKeyDeletedResponse extends keys.ApiKeyDeleted {}

/** A new agent. */
export interface AgentResponse extends agents.AgentCreated {}

/** Names of agents; `total` is the number of all that match, on all pages. */
export interface AgentListResponse extends Omit<agents.AgentPage, 'next_cursor' | 'statuses'> {}

/** One page of agents with their status. */
export interface AgentStatusPage extends agents.AgentPage {
  statuses: AgentStatusResponse[]
}

/** A deletion, restoration or erasure that took effect immediately. */
export interface AppliedMutation extends records.MutationDone {}

/** A change that waits for a delay or for approval, depending on the agent's zone. */
export interface ProposedMutation extends proposals.Proposed {}

/** The state of a proposal. */
export type ProposalState = proposals.Proposed['state']

/** A proposed change, its votes, and its outcome. */
export interface Proposal extends proposals.ProposalView {}

/** One page of proposals. */
export interface ProposalPage extends proposals.ProposalPage {}

/** A change of zone that took effect immediately. */
export interface ZoneChanged extends proposals.ZoneChanged {}

/**
 * A row policy: what users' tokens may do with records that meet all its conditions
 * (docs/adr/0012-row-policies.md).
 */
export type RowPolicy = policies.PoliciesReplaced['policies'][number]

/** The row policies of an agent. */
export interface PoliciesShown extends proposals.PoliciesShown {}

/** Row policies that took effect immediately. */
export interface PoliciesReplaced extends policies.PoliciesReplaced {}

/** Row policies that wait for a delay or for approval, depending on the agent's zone. */
export interface PoliciesProposed extends proposals.PoliciesProposed {}

/** A key rotation that took effect immediately. */
export interface KeyRotated extends proposals.KeyRotated {}

/** Answer to a deletion, restoration or erasure. */
export type MutationResponse = AppliedMutation | ProposedMutation

/** The result of an ingest of many records. */
export interface IngestSummary extends ingest.IngestSummary {}

/** A refused line of an ingest; `line` counts from 1. */
export type IngestFault = ingest.IngestSummary['errors'][number]

/** RFC 6962 inclusion proof of one record, with the checkpoint it leads to. */
export interface ProofResponse extends strand.InclusionProof {}

/** RFC 6962 consistency proof between two sizes of a strand. */
export interface ConsistencyResponse extends serverLog.ConsistencyProof {}

/** RFC 6962 consistency proof between two sizes of the server log. */
export interface LogConsistencyResponse extends serverLog.LogConsistency {}

/** A head of a strand in the server log, with everything needed to check it offline. */
export interface LoggedHeadResponse extends serverLog.LoggedHeadProof {}

/** A moment: Unix milliseconds, an HLC or ISO 8601 text, or a Date. */
export type Moment = number | string | Date

/**
 * A strand as of a moment. Head, checkpoint and zone are null before the genesis record; the checkpoint is
 * also null while the agent is being imported.
 */
export interface AsOfResponse<T = Record<string, unknown>> extends Omit<strand.StrandAsOf, 'records'> {
  records: NucleotideRecord<T>[]
}

/** A directed edge between two agents. */
export interface GraphEdge extends graph.GraphEdge {}

/** An edge to add; its weight is 1 by default. */
export interface NewEdge extends graph.EdgeBody {}

/** The added edge, and its record. */
export interface EdgeAddedResponse extends graph.EdgeAdded, Dated {}

/** The edge that was removed immediately, and the record of the removal. */
export interface EdgeRemovedResponse extends graph.EdgeRemoved, Dated {}

/** One page of edges. */
export interface EdgePageResponse extends graph.EdgePage {}

/** The nodes that a traversal reached; the start is the first one. */
export interface TraversalResult extends graph.TraversalResult {}

/** A ticket for a stream and its reconnections, valid for `expires_in` seconds while the stream is closed. */
export interface StreamTicket extends strand.StreamTicket {}

/** A committed record as sent by streams, which contain no erased records. */
export interface StreamEvent<T = Record<string, unknown>>
  extends
    Pick<
      records.RecordView,
      'record_id' | 'seq' | 'type' | 'timestamp_hlc' | 'timestamp_ms' | 'content_hash' | 'parent_hash'
    >,
    Dated {
  payload: T
  agent: string
}

/** An organism to create: a display name, and optionally an id and agents. */
export interface NewOrganism extends organisms.OrganismCreateBody {}

/** A new organism. */
export interface OrganismResponse extends organisms.OrganismCreated {}

/** An organism with its agents. */
export interface OrganismViewResponse extends organisms.OrganismView {}

/** Organisms; `total` is their number. */
export interface OrganismListResponse extends Omit<organisms.OrganismPage, 'next_cursor'> {}

/** A new agent of an organism. */
export interface MemberResponse extends agents.AgentCreated {}

/** A new auth namespace. */
export interface NamespaceResponse extends organisms.NamespaceInitialised {}

/** A condition on bodies of an unknown type. */
type AnyCondition = NonNullable<queries.LatestQuery['where']>[number]

/**
 * The number of nested levels in a body whose members are checked; below them, any path is accepted. The
 * depth is limited because types can be recursive, and each level multiplies the compiler's work by the
 * number of its members.
 */
type Levels = [1]

/**
 * Compares a field of the body with a literal of the same JSON type. The field is a dotted path, or a JSON
 * Pointer (RFC 6901) if it begins with `/`. Short paths and their values are checked against `T`, the type of
 * the bodies, if its members are known; pointers are not checked.
 */
type WhereCondition<T = Record<string, unknown>> = string extends keyof T
  ? AnyCondition
  : [keyof T] extends [never]
    ? AnyCondition
    : MemberCondition<T, '', Levels> | Below<'/'>

/** A condition on a member of `T`, or on a value nested in it. */
type MemberCondition<T, Prefix extends string, Left extends unknown[]> = T extends object
  ? {
      [K in keyof T & string]-?: Comparison<`${Prefix}${K}`, T[K]> | Within<T[K], `${Prefix}${K}.`, Left>
    }[keyof T & string]
  : never

/** A condition on a value nested in `V`; its path begins with `Prefix`. */
type Within<V, Prefix extends string, Left extends unknown[]> = unknown extends V
  ? Below<Prefix>
  : Left extends [unknown, ...infer Less]
    ? V extends readonly (infer I)[]
      ? Comparison<`${Prefix}${number}`, I> | Within<I, `${Prefix}${number}.`, Less>
      : MemberCondition<V, Prefix, Less>
    : V extends object
      ? Below<Prefix>
      : never

type Below<Prefix extends string> = AnyCondition & { field: `${Prefix}${string}` }

type Comparison<Field extends string, V> =
  | {
      field: Field
      op: Exclude<AnyCondition['op'], 'in' | 'exists'>
      value: Exclude<V, undefined>
    }
  | { field: Field; op: 'in'; value: readonly Exclude<V, undefined>[] }
  | { field: Field; op: 'exists'; value: boolean }
