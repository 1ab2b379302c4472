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
  /** Ends the call; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined
}

/** Options of a call that changes something. */
export interface ChangeOptions extends CallOptions {
  /** Repeating a key within 24 h gets the first answer again. A new one for each call unless given. */
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

/** What has a time. */
export interface Dated {
  /** The time of `timestamp_ms`; added by this client. */
  timestamp: Date
}

/** Answer to a write. `hash` has the prefix `sha256:`, the other hashes are bare hex. */
export interface WriteResponse extends records.WriteResponse, Dated {}

/** A batch item that was refused while others were written. */
export type BatchFailure = Exclude<records.BatchWritten['results'][number], records.WriteResponse>

/** One place in the results of a batch that is not atomic: the record written, or why it was not. */
export type BatchItem = WriteResponse | BatchFailure

/** A record that is read by its hash. */
export interface RecordView<T = Record<string, unknown>> extends Omit<records.RecordView, 'payload'>, Dated {
  /** The record's body; null once erased. */
  payload: T | null
  /** The same object as `payload`; added by this client. */
  data: T | null
}

/** A record in the answer to a query, which leaves erased ones out. */
export interface NucleotideRecord<T = Record<string, unknown>> extends RecordView<T> {
  payload: T
  data: T
}

/** Query body. Times: a number is Unix milliseconds, a string an HLC or ISO 8601. `T` is what `where` is checked against. */
export type QueryBody<T = Record<string, unknown>> =
  | PagedQueryBody<T>
  | Exclude<queries.QueryBody, queries.LatestQuery | queries.TimeRangeQuery>

/** A query that can have several pages. */
export type PagedQueryBody<T = Record<string, unknown>> =
  | Selecting<queries.LatestQuery, T>
  | Selecting<queries.TimeRangeQuery, T>

type Selecting<Q, T> = Omit<Q, 'where'> & {
  /** All must hold. */
  where?: readonly WhereCondition<T>[]
}

/** Head of a strand. `record_count` leaves out the genesis record. */
export interface ChainHeadResponse extends agents.ChainHead, Dated {}

/** Answer to a query; of type `chain_head` it carries the head's fields. */
export interface SaqlQueryResult<T = Record<string, unknown>> extends Partial<ChainHeadResponse> {
  records: NucleotideRecord<T>[]
  next_cursor: string | null
  /** Conditions that compare a number with text, or text with a number, which never matches. */
  warnings?: string[]
}

/** Whose a credential is, and what it may do. */
export interface WhoAmIResponse extends keys.WhoAmI {}

/** What a server is and how it is set. */
export interface ServerInfoResponse extends server.ServerInfo {}

/** What the server has measured. */
export interface MetricsResponse extends metrics.MetricValues {}

/** State of an agent. */
export interface AgentStatusResponse extends agents.AgentStatus, Dated {}

/** What may happen to an agent's records once they are written (docs/OPERATIONS.md, Zones and proposals). */
export type Zone = agents.AgentStatus['zone']

/** A scoped API key, without what it opens with. */
export type ApiKey = keys.ApiKeyPage['api_keys'][number]

/** One page of API keys. */
export interface ApiKeyPageResponse extends keys.ApiKeyPage {}

/** An API key to be made. */
export interface NewApiKey extends keys.ApiKeyCreateBody {}

/** A newly made API key, shown this once; one that waits for approval names its proposal. */
export type ApiKeyMade = keys.ApiKeyCreated | keys.ApiKeyProposed

/** An API key that was deleted. */
export interface ApiKeyDeletedResponse extends keys.ApiKeyDeleted {}

/** A newly made agent. */
export interface AgentResponse extends agents.AgentCreated {}

/** Names of agents; `total` counts all that match, on this page or not. */
export interface AgentListResponse extends Omit<agents.AgentPage, 'next_cursor' | 'statuses'> {}

/** One page of agents with their status. */
export interface AgentStatusPage extends agents.AgentPage {
  statuses: AgentStatusResponse[]
}

/** A deletion, restoration or erasure that took effect at once. */
export interface AppliedMutation extends records.MutationDone {}

/** A change that waits for its time or for approval, as the agent's zone says. */
export interface ProposedMutation extends proposals.Proposed {}

/** The state of a proposal. */
export type ProposalState = proposals.Proposed['state']

/** A proposed change, its votes, and its outcome. */
export interface Proposal extends proposals.ProposalView {}

/** One page of proposals. */
export interface ProposalPage extends proposals.ProposalPage {}

/** A change of zone that took effect at once. */
export interface ZoneChanged extends proposals.ZoneChanged {}

/** What users' tokens may do with the records for which all conditions hold (docs/adr/0012-row-policies.md). */
export type RowPolicy = policies.PoliciesShown['policies'][number]

/** The row policies of an agent. */
export interface PoliciesShown extends policies.PoliciesShown {}

/** Row policies that took effect at once. */
export interface PoliciesReplaced extends policies.PoliciesReplaced {}

/** A key rotation that took effect at once. */
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

/** A moment: Unix milliseconds, an HLC or ISO 8601 as a string, or a date. */
export type Moment = number | string | Date

/**
 * A strand as it was at a moment; head, checkpoint and zone are null before its genesis record, and the checkpoint while
 * the agent is being imported.
 */
export interface AsOfResponse<T = Record<string, unknown>> extends Omit<strand.StrandAsOf, 'records'> {
  records: NucleotideRecord<T>[]
}

/** A directed edge between two agents. */
export interface GraphEdge extends graph.GraphEdge {}

/** An edge to be added; its weight is 1 unless given. */
export interface NewEdge extends graph.EdgeBody {}

/** An edge that was added, with its record. */
export interface EdgeAddedResponse extends graph.EdgeAdded, Dated {}

/** An edge that was removed at once, with its record. */
export interface EdgeRemovedResponse extends graph.EdgeRemoved, Dated {}

/** One page of edges. */
export interface EdgePageResponse extends graph.EdgePage {}

/** What a traversal reached; the start is the first node. */
export interface TraversalResult extends graph.TraversalResult {}

/** A ticket for a stream and its reconnections, valid for `expires_in` seconds while the stream is closed. */
export interface StreamTicket extends strand.StreamTicket {}

/** A committed record as streams send it, which leave erased ones out. */
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

/** An organism to be made: a name for people, and perhaps an id and agents. */
export interface NewOrganism extends organisms.OrganismCreateBody {}

/** A newly made organism. */
export interface OrganismResponse extends organisms.OrganismCreated {}

/** An organism with its agents. */
export interface OrganismViewResponse extends organisms.OrganismView {}

/** Organisms; `total` counts them. */
export interface OrganismListResponse extends Omit<organisms.OrganismPage, 'next_cursor'> {}

/** A newly made agent of an organism. */
export interface MemberResponse extends agents.AgentCreated {}

/** A newly made auth namespace. */
export interface NamespaceResponse extends organisms.NamespaceInitialised {}

/** A condition on bodies of which nothing is known. */
type AnyCondition = NonNullable<queries.LatestQuery['where']>[number]

/**
 * Levels of objects and arrays within a body whose members are checked; below them any path is taken. A type may contain
 * itself, and each level makes the compiler slower by as many times as it has members.
 */
type Levels = [1]

/**
 * Compares a field of the body with a literal of the same JSON type. The field is a dotted path, or a JSON Pointer (RFC
 * 6901) where it begins with `/`. Short paths and values are checked against `T`, the type of the bodies, where it names its
 * members; pointers are not.
 */
type WhereCondition<T = Record<string, unknown>> = string extends keyof T
  ? AnyCondition
  : [keyof T] extends [never]
    ? AnyCondition
    : MemberCondition<T, '', Levels> | Below<'/'>

/** A condition on a member of `T`, or of what is in it. */
type MemberCondition<T, Prefix extends string, Left extends unknown[]> = T extends object
  ? {
      [K in keyof T & string]-?: Comparison<`${Prefix}${K}`, T[K]> | Within<T[K], `${Prefix}${K}.`, Left>
    }[keyof T & string]
  : never

/** A condition on what is in a value; its path begins with `Prefix`. */
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
