import { MessagePort } from 'node:worker_threads'
import { hasKind, isBytes, isNumber, isText, listOf, members, optional, type Check } from '../base/shape.js'

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
  /** By what rows of the cluster are recognised: a key, and its id. */
  rows: { key: Uint8Array; cluster: string }
  /** How long a node may answer whose beats do not count, milliseconds: those of which nothing is known are waited for. */
  patienceMs: number
}

/** What that thread is told to end by. */
export const endLog = 'end'

/** A shard's way to that thread. */
export interface ShardLine {
  shard: number
  port: MessagePort
  /** One number, 32 bits: the answers that were given. */
  answers: SharedArrayBuffer
  /** One number, 32 bits, of all lines: 1 when the process ends and nobody is to wait for an answer. */
  ends: SharedArrayBuffer
  /** The file that says what the node knows to be durable of the log; absent for a reader of logs that is no node. */
  known?: string | undefined
}

/** The lines of one shard: its checkpoints are written while it appends. */
export interface ClusterLines {
  /** The cluster's id, 32 hex digits. */
  cluster: string
  /** The node that it belongs to, as which incarnation. */
  writer: { node: string; incarnation: number }
  log: ShardLine
  checkpoints: ShardLine
}

export const isClusterLogSettings = members<ClusterLogSettings>({
  urls: listOf(isText),
  tables: isText,
  rows: members<ClusterLogSettings['rows']>({ key: isBytes, cluster: isText }),
  patienceMs: isNumber,
})

const isShared = (value: unknown): value is SharedArrayBuffer => value instanceof SharedArrayBuffer

export const isShardLine = members<ShardLine>({
  shard: isNumber,
  port: (value): value is MessagePort => value instanceof MessagePort,
  answers: isShared,
  ends: isShared,
  known: optional(isText),
})

export const areClusterLines = members<ClusterLines>({
  cluster: isText,
  writer: members<ClusterLines['writer']>({ node: isText, incarnation: isNumber }),
  log: isShardLine,
  checkpoints: isShardLine,
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

/** A part of a checkpoint that is written: part 0 comes last, and makes those before it of no use. */
export interface CheckpointPart {
  segment: number
  part: number
  state: Uint8Array
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
  | { kind: 'lastCheckpoint' }
  | { kind: 'checkpointPart'; segment: number; part: number }
  | ({ kind: 'putCheckpoint' } & CheckpointPart)
  /** What the node knows to be durable, and what the log lacks of it. */
  | { kind: 'known' }
  /** Whether the log has a segment, where one is given; where it has, another one is noted as durable. */
  | { kind: 'confirm'; there: SegmentName | null; durable: SegmentName | null }
  /** Whether a node is alive, as an incarnation of it. */
  | { kind: 'isAlive'; node: string; incarnation: number }

/** A row of a segment as it was read. */
export interface SegmentRow extends SegmentPart {
  segment: number
  part: number
  hash: Uint8Array
  header: string
}

/** What became of an append; see `AppendOutcome` of src/cluster/database/register.ts. */
export type Appended = 'durable' | 'fenced' | 'lost' | 'unknown'

/** What it gets. */
export type LogAnswer =
  | { kind: 'appended'; became: Appended; reason: string }
  | { kind: 'rows'; rows: SegmentRow[] }
  | { kind: 'lastCheckpoint'; head: Uint8Array | null; stateBytes: number }
  | { kind: 'checkpointPart'; state: Uint8Array | null }
  | { kind: 'kept' }
  /** Segment -1 where nothing is known; an empty text where nothing is missing. */
  | { kind: 'known'; segment: number; loss: string }
  | { kind: 'confirmed'; isThere: boolean }
  | { kind: 'isAlive'; alive: boolean }
  | { kind: 'failed'; reason: string }

/** What the thread of the log tells of itself, since its start. */
export interface ClusterLogFigures {
  /** Appends that are durable, and the seconds that they took together. */
  appends: number
  appendSecs: number
  /** Appends that another node's segment was in the place of, and those of which nothing is known. */
  fenced: number
  unknown: number
  /** Connections that were made. */
  connections: number
}

/** The same, and how the node stands. */
export interface ClusterFigures extends ClusterLogFigures {
  mayAnswer: boolean
  /** How many shards it owns. */
  owned: number
  /** Nodes that are alive, as it knows. */
  members: number
  /** How long ago it had all that the logs of the others had, seconds: 0 for who owns all. */
  lagSecs: number
}

/** Those of a thread that has done nothing yet. */
export const noClusterFigures: Readonly<ClusterLogFigures> = {
  appends: 0,
  appendSecs: 0,
  fenced: 0,
  unknown: 0,
  connections: 0,
}

export const isLogRequest: Check<LogRequest> = hasKind
export const isLogAnswer: Check<LogAnswer> = hasKind
