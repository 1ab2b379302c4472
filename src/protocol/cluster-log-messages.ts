import { MessagePort } from 'node:worker_threads'
import {
  anyOf,
  type Check,
  type Checked,
  fields,
  isBytes,
  isFlag,
  isNumber,
  isText,
  listOf,
  oneOf,
  optional,
} from '../base/shape.js'

/*
 * What a shard's thread and the thread of the cluster's log say to each other (docs/adr/0044-cluster-log.md), by a port of
 * each shard; the shard may wait for an answer in shared memory. Each shape is declared by its check.
 */

/** What the thread of the log is started with. */
export const isClusterLogSettings = fields({
  /** Addresses of the database's servers, with their passwords. */
  urls: listOf(isText),
  /** Prefix of the names of its tables. */
  tables: isText,
  /** By what rows of the cluster are recognised: a key, and its id. */
  rows: fields({ key: isBytes, cluster: isText }),
  /** How long a node may answer whose beats do not count, milliseconds: those of which nothing is known are waited for. */
  patienceMs: isNumber,
})
export type ClusterLogSettings = Checked<typeof isClusterLogSettings>

/** What that thread is told to end by. */
export const endLog = 'end'

const isShared: Check<SharedArrayBuffer> = (value) => value instanceof SharedArrayBuffer
const isPort: Check<MessagePort> = (value) => value instanceof MessagePort

/** A shard's way to that thread. */
export const isShardLine = fields({
  shard: isNumber,
  port: isPort,
  /** One number, 32 bits: the answers that were given. */
  answers: isShared,
  /** One number, 32 bits, of all lines: 1 when the process ends and nobody is to wait for an answer. */
  ends: isShared,
  /** The file that says what the node knows to be durable of the log; absent for a reader of logs that is no node. */
  known: optional(isText),
})
export type ShardLine = Checked<typeof isShardLine>

/** The lines of one shard: its checkpoints are written while it appends. */
export const areClusterLines = fields({
  /** The cluster's id, 32 hex digits. */
  cluster: isText,
  /** The node that it belongs to, as which incarnation. */
  writer: fields({ node: isText, incarnation: isNumber }),
  log: isShardLine,
  checkpoints: isShardLine,
})
export type ClusterLines = Checked<typeof areClusterLines>

const isState: Check<Uint8Array | null> = (value) => value === null || isBytes(value)

/** A row of a segment: bodies in the clear, and sealed rows. */
const part = { blocks: isBytes, state: isState }
const isPart = fields(part)
export type SegmentPart = Checked<typeof isPart>

/** Where a segment stands: its number, and its hash. */
const isName = fields({ segment: isNumber, hash: isBytes })
export type SegmentName = Checked<typeof isName>

/** Bodies of a row that was written before, as they are from now on. */
const isRewrite = fields({ segment: isNumber, part: isNumber, hash: isBytes, blocks: isBytes })
export type SegmentRewrite = Checked<typeof isRewrite>

/** A part of a checkpoint that is written: part 0 comes last, and makes those before it of no use. */
const checkpointPart = { segment: isNumber, part: isNumber, state: isBytes }

/** A row of a segment as it was read. */
const isRow = fields({ ...part, segment: isNumber, part: isNumber, hash: isBytes, header: isText })
export type SegmentRow = Checked<typeof isRow>

const isNameOrNone: Check<SegmentName | null> = (value) => value === null || isName(value)

/** What a shard asks for. One append is under way at a time. */
export const isLogRequest = anyOf(
  fields({
    kind: oneOf('append'),
    before: isName,
    after: isName,
    header: isText,
    parts: listOf(isPart),
    /** Rows of other segments that are written with it, or not at all. */
    rewrites: listOf(isRewrite),
  }),
  fields({ kind: oneOf('read'), after: fields({ segment: isNumber, part: isNumber }), rows: isNumber }),
  fields({ kind: oneOf('lastCheckpoint') }),
  fields({ kind: oneOf('checkpointPart'), segment: isNumber, part: isNumber }),
  fields({ kind: oneOf('putCheckpoint'), ...checkpointPart }),
  /** What the node knows to be durable, and what the log lacks of it. */
  fields({ kind: oneOf('known') }),
  /** Whether the log has a segment, where one is given; where it has, another one is noted as durable. */
  fields({ kind: oneOf('confirm'), there: isNameOrNone, durable: isNameOrNone }),
  /** Whether a node is alive, as an incarnation of it. */
  fields({ kind: oneOf('isAlive'), node: isText, incarnation: isNumber }),
)
export type LogRequest = Checked<typeof isLogRequest>

/** What became of an append; see `AppendOutcome` of src/cluster/database/register.ts. */
const isAppended = oneOf('durable', 'fenced', 'lost', 'unknown')

/** What it gets. */
export const isLogAnswer = anyOf(
  fields({ kind: oneOf('appended'), became: isAppended, reason: isText }),
  fields({ kind: oneOf('rows'), rows: listOf(isRow) }),
  fields({ kind: oneOf('lastCheckpoint'), head: isState, stateBytes: isNumber }),
  fields({ kind: oneOf('checkpointPart'), state: isState }),
  fields({ kind: oneOf('kept') }),
  /** Segment -1 where nothing is known; an empty text where nothing is missing. */
  fields({ kind: oneOf('known'), segment: isNumber, loss: isText }),
  fields({ kind: oneOf('confirmed'), isThere: isFlag }),
  fields({ kind: oneOf('isAlive'), alive: isFlag }),
  fields({ kind: oneOf('failed'), reason: isText }),
)
export type LogAnswer = Checked<typeof isLogAnswer>

/** What the thread of the log tells of itself, since its start. */
export const isClusterLogFigures = fields({
  /** Appends that are durable, and the seconds that they took together. */
  appends: isNumber,
  appendSecs: isNumber,
  /** Appends that another node's segment was in the place of, and those of which nothing is known. */
  fenced: isNumber,
  unknown: isNumber,
  /** Connections that were made. */
  connections: isNumber,
})
export type ClusterLogFigures = Checked<typeof isClusterLogFigures>

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
