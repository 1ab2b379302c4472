import { MessagePort } from 'node:worker_threads'
import { either, isBytes, isNumber, isText, listOf, members, oneOf, type Check } from '../base/shape.js'

/*
 * What a shard's thread and the thread of the cluster's log say to each other (docs/adr/0044-cluster-log.md), by a port of
 * each shard; the shard may wait for an answer in shared memory.
 */

/** What the thread of the log is started with. */
export interface ClusterLogSettings {
  /** Addresses of the database's servers, with their passwords. */
  urls: string[]
  /** Prefix of the names of its tables. */
  tables: string
}

/** A shard's way to that thread. */
export interface ShardLine {
  shard: number
  port: MessagePort
  /** One number, 32 bits: the answers that were given. */
  answers: SharedArrayBuffer
}

export const isClusterLogSettings = members<ClusterLogSettings>({ urls: listOf(isText), tables: isText })

export const isShardLine = members<ShardLine>({
  shard: isNumber,
  port: (value): value is MessagePort => value instanceof MessagePort,
  answers: (value): value is SharedArrayBuffer => value instanceof SharedArrayBuffer,
})

/** A row of a segment: bodies in the clear, and sealed rows. */
export interface SegmentPart {
  blocks: Uint8Array
  state: Uint8Array | null
}

/** Where a segment stands: its number, and its hash. */
export interface SegmentName {
  segment: number
  hash: Uint8Array
}

/** Bodies of a row that was written before, as they are from now on. */
export interface SegmentRewrite {
  segment: number
  part: number
  hash: Uint8Array
  blocks: Uint8Array
}

/** What a shard asks for. One append is under way at a time. */
export type LogRequest =
  | {
      kind: 'append'
      before: SegmentName
      after: SegmentName
      header: string
      parts: SegmentPart[]
      /** Rows of other segments that are written with it, or not at all. */
      rewrites: SegmentRewrite[]
    }
  | { kind: 'read'; after: { segment: number; part: number }; rows: number }

/** A row of a segment as it was read. */
export interface SegmentRow extends SegmentPart {
  segment: number
  part: number
  hash: Uint8Array
  header: string
}

/** What became of an append; see `AppendOutcome` of src/outbound/cluster/register.ts. */
export type Appended = 'durable' | 'fenced' | 'lost' | 'unknown'

/** What it gets. */
export type LogAnswer =
  | { kind: 'appended'; became: Appended; reason: string }
  | { kind: 'rows'; rows: SegmentRow[] }
  | { kind: 'failed'; reason: string }

const isState: Check<Uint8Array | null> = (value) => value === null || isBytes(value)
const isPart = members<SegmentPart>({ blocks: isBytes, state: isState })
const isName = members<SegmentName>({ segment: isNumber, hash: isBytes })

export const isLogRequest: Check<LogRequest> = either(
  members<Extract<LogRequest, { kind: 'append' }>>({
    kind: oneOf('append'),
    before: isName,
    after: isName,
    header: isText,
    parts: listOf(isPart),
    rewrites: listOf(
      members<SegmentRewrite>({ segment: isNumber, part: isNumber, hash: isBytes, blocks: isBytes }),
    ),
  }),
  members<Extract<LogRequest, { kind: 'read' }>>({
    kind: oneOf('read'),
    after: members<{ segment: number; part: number }>({ segment: isNumber, part: isNumber }),
    rows: isNumber,
  }),
)

export const isLogAnswer: Check<LogAnswer> = either(
  members<Extract<LogAnswer, { kind: 'appended' }>>({
    kind: oneOf('appended'),
    became: oneOf('durable', 'fenced', 'lost', 'unknown'),
    reason: isText,
  }),
  either(
    members<Extract<LogAnswer, { kind: 'rows' }>>({
      kind: oneOf('rows'),
      rows: listOf(
        members<SegmentRow>({
          segment: isNumber,
          part: isNumber,
          hash: isBytes,
          header: isText,
          blocks: isBytes,
          state: isState,
        }),
      ),
    }),
    members<Extract<LogAnswer, { kind: 'failed' }>>({ kind: oneOf('failed'), reason: isText }),
  ),
)
