import type * as agents from '../wire/agents.js'
import type * as keys from '../wire/api-keys.js'
import type * as graph from '../wire/graph.js'
import type * as ingest from '../wire/ingest.js'
import type * as organisms from '../wire/organisms.js'
import type * as policies from '../wire/policies.js'
import type * as queries from '../wire/query.js'
import type * as proposals from '../wire/proposals.js'
import type * as records from '../wire/records.js'
import type * as strand from '../wire/strand.js'

// Answers and bodies as they are sent, by their names in src/wire.
export type { ApiKeyCreateBody, ApiKeyDeleted, ApiKeyPage, WhoAmI } from '../wire/api-keys.js'
export type { ServerInfo } from '../wire/server.js'
export type { MetricValues } from '../wire/metrics.js'
export type { AgentCreated } from '../wire/agents.js'
export type { MutationDone } from '../wire/records.js'
export type {
  KeyRotated,
  PoliciesProposed,
  PoliciesShown,
  ProposalPage,
  ProposalView,
  Proposed,
  ZoneChanged,
} from '../wire/proposals.js'
export type { PoliciesReplaced } from '../wire/policies.js'
export type { IngestSummary } from '../wire/ingest.js'
export type { InclusionProof, StreamTicket } from '../wire/strand.js'
export type { ConsistencyProof, LogConsistency, LoggedHeadProof } from '../wire/server-log.js'
export type { EdgeBody, EdgePage, GraphEdge, TraversalResult } from '../wire/graph.js'
export type {
  NamespaceInitialised,
  OrganismCreateBody,
  OrganismCreated,
  OrganismView,
} from '../wire/organisms.js'

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

/** State of an agent. */
export interface AgentStatusResponse extends agents.AgentStatus, Dated {}

/** The zone of an agent: how its written records may be changed (docs/ZONES.md). */
export type Zone = agents.AgentStatus['zone']

/** A scoped API key, without the secret. */
export type ApiKey = keys.ApiKeyPage['api_keys'][number]

/**
 * A new API key with its secret, which is returned only here; a key that waits for approval has the id of its
 * proposal.
 */
export type ApiKeyMade = keys.ApiKeyCreated | keys.ApiKeyProposed

/** Names of agents; `total` is the number of all that match, on all pages. */
export interface AgentListResponse extends Omit<agents.AgentPage, 'next_cursor' | 'statuses'> {}

/** One page of agents with their status. */
export interface AgentStatusPage extends agents.AgentPage {
  statuses: AgentStatusResponse[]
}

/** The state of a proposal. */
export type ProposalState = proposals.Proposed['state']

/**
 * A row policy: what users' tokens may do with records that meet all its conditions
 * (docs/adr/0012-row-policies.md).
 */
export type RowPolicy = policies.PoliciesReplaced['policies'][number]

/** Answer to a deletion, restoration or erasure. */
export type MutationResponse = records.MutationDone | proposals.Proposed

/** A refused line of an ingest; `line` counts from 1. */
export type IngestFault = ingest.IngestSummary['errors'][number]

/** A moment: Unix milliseconds, an HLC or ISO 8601 text, or a Date. */
export type Moment = number | string | Date

/**
 * A strand as of a moment. Head, checkpoint and zone are null before the genesis record; the checkpoint is
 * also null while the agent is being imported.
 */
export interface AsOfResponse<T = Record<string, unknown>> extends Omit<strand.StrandAsOf, 'records'> {
  records: NucleotideRecord<T>[]
}

/** The added edge, and its record. */
export interface EdgeAddedResponse extends graph.EdgeAdded, Dated {}

/** The edge that was removed immediately, and the record of the removal. */
export interface EdgeRemovedResponse extends graph.EdgeRemoved, Dated {}

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

/** Organisms; `total` is their number. */
export interface OrganismListResponse extends Omit<organisms.OrganismPage, 'next_cursor'> {}

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
      op: Exclude<AnyCondition['op'], 'in' | 'exists' | 'contains' | 'starts_with'>
      value: Exclude<V, undefined>
      ci?: boolean
    }
  | { field: Field; op: 'in'; value: readonly Exclude<V, undefined>[]; ci?: boolean }
  | { field: Field; op: 'contains'; value: V extends readonly (infer I)[] ? I : V & string; ci?: boolean }
  | { field: Field; op: 'starts_with'; value: V & string; ci?: boolean }
  | { field: Field; op: 'exists'; value: boolean }
