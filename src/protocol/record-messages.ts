import type { Refusal } from '../base/errors.js'
import type { Condition } from '../strand/condition.js'
import type { Hlc } from '../strand/hlc.js'
import type { RecordAction } from '../strand/proposal.js'
import type { UserAccess, WriteOnce, WriteOptions } from './command-options.js'
import type { Author } from './proposal-messages.js'

/*
 * Messages about the records of an agent. Bodies are the bytes that arrived.
 */

/** Appends the record of one request body `{data, type?}`. `emerge`: make the agent when it does not exist. */
export interface RecordAppend {
  kind: 'recordAppend'
  agent: string
  emerge: boolean
  body: Uint8Array
  options: WriteOptions
  access?: UserAccess
}

/** Appends the records of one request body `{records, atomic?}`. */
export interface BatchAppend {
  kind: 'batchAppend'
  agent: string
  emerge: boolean
  body: Uint8Array
  options: WriteOptions
  access?: UserAccess
}

/** A CloudEvent of binary mode without its data (CloudEvents 1.0, HTTP Protocol Binding). */
export interface EventHead {
  attributes: Record<string, string>
  data: 'json' | 'text' | 'base64'
}

/** Appends one record whose body is the whole request body. */
export interface IngestOne {
  kind: 'ingestOne'
  agent: string
  body: Uint8Array
  /** A body that is refused becomes records of type `ingest/rejected`. */
  keep?: true
  /** Why the front thread refuses it: it is only kept. */
  refusal?: Refusal
  /** `text`: integers beyond ±(2^53-1) are kept as strings. */
  integers?: 'text'
  once?: WriteOnce
  /** The attributes of the CloudEvent whose data is the body, and how the data is given. */
  event?: EventHead
  options: WriteOptions
  access?: UserAccess
}

/**
 * Appends the records of some NDJSON lines, whole lines only, the first of them number `firstLine` of the stream. With
 * `lineNumbers` the lines are `{agent, data, type?}` of agents of this shard and have those numbers; without, each is
 * the body of a record of `agent`. With `refusals` they are lines that the front thread has refused, and `agent` keeps
 * them: those of `lineNumbers`, or the whole chunk as one line. `mode`: `skip` leaves bad lines out, `keep` makes records of
 * type `ingest/rejected` of them, `reject` writes nothing when one is bad, `check` writes nothing at all.
 */
export interface IngestChunk {
  kind: 'ingestChunk'
  /** Empty where each line names its own. */
  agent: string
  chunk: Uint8Array
  firstLine: number
  lineNumbers?: number[]
  refusals?: Refusal[]
  mode: 'skip' | 'keep' | 'reject' | 'check'
  /** `text`: integers beyond ±(2^53-1) are kept as strings. */
  integers?: 'text'
  once?: WriteOnce
  options: WriteOptions
  access?: UserAccess
}

export interface RecordGet {
  kind: 'recordGet'
  agent: string
  hash: string
  access?: UserAccess
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

/** One page of an agent's records, between two moments, oldest or newest first. */
export interface RecordQuery {
  kind: 'recordQuery'
  agent: string
  order: 'asc' | 'desc'
  limit: number
  from?: Hlc
  /** The end, included; records are shown as of this moment. */
  to?: Hlc
  types?: string[]
  where?: Condition[]
  cursor?: PageCursor
  /** Bytes of rows after which it ends early; `limits.pageBytesMax` when absent. */
  bytesMax?: number
  access?: UserAccess
}

/** Where a page continues: the next seq to look at, and the seq as of which the strand is read. */
export interface PageCursor {
  nextSeq: number
  asOfSeq: number
}
