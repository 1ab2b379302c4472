import type { Refusal } from '../base/errors.js'
import type { Condition } from '../strand/operators.js'
import type { Hlc } from '../strand/hlc.js'
import type { RecordAction } from '../strand/proposal.js'
import type { UserAccess, WriteOnce, WriteOptions } from './command-options.js'
import type { Author } from './proposal-messages.js'

/* Messages about the records of an agent. Bodies are the received bytes. */

/** Appends the record of a request body `{data, type?}`. `emerge`: create the agent if it does not exist. */
export interface RecordAppend {
  kind: 'recordAppend'
  agent: string
  emerge: boolean
  body: Uint8Array
  options: WriteOptions
  access?: UserAccess
}

/** Appends the records of a request body `{records, atomic?}`. */
export interface BatchAppend extends Omit<RecordAppend, 'kind'> {
  kind: 'batchAppend'
}

/** A CloudEvent of binary mode without its data (CloudEvents 1.0, HTTP Protocol Binding). */
export interface EventHead {
  attributes: Record<string, string>
  data: 'json' | 'text' | 'base64'
}

/** Appends one record whose body is the request body. */
export interface IngestOne {
  kind: 'ingestOne'
  agent: string
  body: Uint8Array
  /** Whether a refused body is stored as records of type `ingest/rejected`. */
  keep?: true
  /** The refusal of the front thread: the body is only stored as rejected. */
  refusal?: Refusal
  /** `text`: integers beyond ±(2^53-1) are stored as strings. */
  integers?: 'text'
  once?: WriteOnce
  /** The attributes of the CloudEvent whose data is the body, and the encoding of the data. */
  event?: EventHead
  options: WriteOptions
  access?: UserAccess
}

/**
 * Appends the records of whole NDJSON lines, of which the first has the number `firstLine` in the stream.
 * With `lineNumbers`, the lines are `{agent, data, type?}` of agents of this shard and have those numbers;
 * otherwise, each line is the body of a record of `agent`. With `refusals`, the front thread has refused the
 * lines of `lineNumbers`, or the whole chunk as one line, and `agent` stores them as rejected.
 *
 * `mode`: `skip` skips bad lines; `keep` stores them as records of type `ingest/rejected`; `reject` writes
 * nothing if a line is bad; `check` never writes.
 */
export interface IngestChunk extends Pick<IngestOne, 'integers' | 'once' | 'options' | 'access'> {
  kind: 'ingestChunk'
  /** Empty if each line names its agent. */
  agent: string
  chunk: Uint8Array
  firstLine: number
  lineNumbers?: number[]
  /** The lines are `{agent, data, type?}`, all of `agent`. */
  addressed?: true
  refusals?: Refusal[]
  mode: 'skip' | 'keep' | 'reject' | 'check'
}

export interface RecordGet {
  kind: 'recordGet'
  agent: string
  hash: string
  access?: UserAccess
}

/** Finds the records of all agents of a shard by the beginning of their hash, at least 8 hex digits. */
export interface RecordFind {
  kind: 'recordFind'
  digits: string
  limit: number
  access?: UserAccess
}

/** A record that was found, without its body. */
export interface FoundRecord {
  agent: string
  seq: number
  hash: string
  type: string
  hlc: Hlc
}

/** The answer to `recordFind`. */
export interface RecordsFoundOutcome {
  kind: 'recordsFound'
  records: FoundRecord[]
}

/** Deletes (a tombstone), restores or erases the record `hash`. */
export interface RecordMutate extends Author {
  kind: 'recordMutate'
  agent: string
  action: RecordAction
  hash: string
  options: WriteOptions
  access?: UserAccess
}

/** Reads a page of an agent's records between two moments, oldest or newest first. */
export interface RecordQuery {
  kind: 'recordQuery'
  agent: string
  order: 'asc' | 'desc'
  limit: number
  from?: Hlc
  /** The inclusive end; records are shown as of this moment. */
  to?: Hlc
  types?: string[]
  where?: Condition[]
  cursor?: PageCursor
  /** Bytes of rows after which the page ends early; `limits.pageBytesMax` when absent. */
  bytesMax?: number
  access?: UserAccess
}

/** The position of the next page: its first seq, and the seq as of which the strand is read. */
export interface PageCursor {
  nextSeq: number
  asOfSeq: number
}

/**
 * Answered by `done` when every part of an upload that its caller has sent before is decided. Sent in the name
 * of a caller whose credential has ended.
 */
export interface UploadsEnd {
  kind: 'uploadsEnd'
  options: WriteOptions
}

/**
 * Rows in wire JSON, separated by commas, as UTF-8 bytes to avoid decoding and encoding; without a cursor at
 * the end.
 */
export interface RowsOutcome {
  kind: 'rows'
  rows: Uint8Array
  /** The number of rows. */
  count: number
  cursor?: PageCursor
  /** For a query: the indexes of conditions that compare a number with a text of a record, or the reverse. */
  mismatched?: number[]
}

export interface IngestedOutcome {
  kind: 'ingested'
  accepted: number
  rejected: number
  /** Refused lines that were stored as records. */
  kept?: number
  /** Accepted lines that were already stored. */
  duplicates?: number
  /** The number of refused lines by code; absent in idempotent answers of earlier versions. */
  rejectedByCode?: Record<string, number>
  /** The first refused lines. */
  faults: LineFault[]
  agents: AgentIngested[]
  replayed?: boolean
}

/**
 * Whether an outcome is stored under its Idempotency-Key. An outcome with refusals and nothing accepted is
 * not, like any refusal, so that the caller can correct the request. Nor is an outcome of lines that name no
 * agent.
 */
export function isStoredOutcome({ accepted, rejected, kept = 0, agents }: IngestedOutcome): boolean {
  return (accepted + kept > 0 || rejected === 0) && agents.some(({ agent }) => agent !== '')
}

export interface AgentIngested {
  agent: string
  accepted: number
  rejected: number
  firstSeq: number
  lastSeq: number
  chainHead: string
}

export interface LineFault {
  line: number
  agent: string
  refusal: Refusal
}

export type RecordCommand =
  | RecordAppend
  | BatchAppend
  | IngestOne
  | IngestChunk
  | RecordGet
  | RecordFind
  | RecordMutate
  | RecordQuery
  | UploadsEnd

export type RecordOutcome = RecordsFoundOutcome | RowsOutcome | IngestedOutcome
