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
 * Messages between the thread of a shard and the thread of the cluster's log, over one port per shard
 * (docs/adr/0044-cluster-log.md). A shard can wait for an answer in shared memory. Each shape is declared by
 * its check.
 */

export const isClusterLogSettings = fields({
  /** URLs of the database servers, with their passwords. */
  urls: listOf(isText),
  /** The prefix of its table names. */
  tables: isText,
  /** The identity of the tables that this node uses; absent for a reader that is not a node. */
  identity: optional(isText),
  /** The key of the MACs of the cluster's rows, and the id of the cluster. */
  rows: fields({ key: isBytes, cluster: isText }),
  /**
   * How long a node without heartbeats may still answer, milliseconds: the wait for a node of unknown state.
   */
  takeOverDelayMs: isNumber,
})
export type ClusterLogSettings = Checked<typeof isClusterLogSettings>

/** The message that ends the log thread. */
export const endLog = 'end'

const isShared: Check<SharedArrayBuffer> = (value) => value instanceof SharedArrayBuffer
const isPort: Check<MessagePort> = (value) => value instanceof MessagePort

export const isLogChannel = fields({
  shard: isNumber,
  port: isPort,
  /** One 32-bit number: the count of answers. */
  answers: isShared,
  /** One 32-bit number for all channels: 1 when the process ends and no thread must wait for an answer. */
  ends: isShared,
  /**
   * The file with the last segment that the node knows to be durable; absent for a reader that is not a node.
   */
  known: optional(isText),
})
export type LogChannel = Checked<typeof isLogChannel>

/** The channels of one shard, which writes checkpoints while it appends. */
export const areClusterChannels = fields({
  /** The cluster's id, 32 hex digits. */
  cluster: isText,
  writer: fields({ node: isText, incarnation: isNumber }),
  /** Of a `ConfirmedClock`. */
  clock: (value): value is SharedArrayBuffer => value instanceof SharedArrayBuffer,
  log: isLogChannel,
  checkpoints: isLogChannel,
})
export type ClusterChannels = Checked<typeof areClusterChannels>

const isState: Check<Uint8Array | null> = (value) => value === null || isBytes(value)

/** A row of a segment: plaintext blocks of bodies, and sealed state. */
const part = { blocks: isBytes, state: isState }
const isPart = fields(part)
export type SegmentPart = Checked<typeof isPart>

const isName = fields({ segment: isNumber, hash: isBytes })
export type SegmentName = Checked<typeof isName>

/** New bodies of a row that was written before. */
const isRewrite = fields({ segment: isNumber, part: isNumber, hash: isBytes, blocks: isBytes })
export type SegmentRewrite = Checked<typeof isRewrite>

/** A part of a new checkpoint. Part 0 is written last and completes it. */
const checkpointPart = { segment: isNumber, part: isNumber, state: isBytes }

/** A row of a segment as read from the log. */
const isRow = fields({ ...part, segment: isNumber, part: isNumber, hash: isBytes, header: isText })
export type SegmentRow = Checked<typeof isRow>

const isNameOrNone: Check<SegmentName | null> = (value) => value === null || isName(value)

/** A request of a shard. Only one append is in flight at a time. */
export const isLogRequest = anyOf(
  fields({
    kind: oneOf('append'),
    before: isName,
    after: isName,
    header: isText,
    parts: listOf(isPart),
    /** Rows of other segments that are written in the same transaction. */
    rewrites: listOf(isRewrite),
  }),
  fields({ kind: oneOf('read'), after: fields({ segment: isNumber, part: isNumber }), rows: isNumber }),
  fields({ kind: oneOf('lastCheckpoint') }),
  fields({ kind: oneOf('checkpointPart'), segment: isNumber, part: isNumber }),
  fields({ kind: oneOf('putCheckpoint'), ...checkpointPart }),
  /** Removes the sealed rows of the segments up to a complete checkpoint, and earlier checkpoints. */
  fields({ kind: oneOf('removeSealed'), segment: isNumber }),
  /** Reads the last segment that the node knows to be durable, and what the log lacks up to it. */
  fields({ kind: oneOf('known') }),
  /** Checks whether the log has the segment `there`, if given. If so, records `durable` as durable. */
  fields({ kind: oneOf('confirm'), there: isNameOrNone, durable: isNameOrNone }),
  /** Checks whether an incarnation of a node is alive. */
  fields({ kind: oneOf('isAlive'), node: isText, incarnation: isNumber }),
)
export type LogRequest = Checked<typeof isLogRequest>

/** The result of an append; see `AppendOutcome` of src/cluster/database/register.ts. */
const isAppended = oneOf('durable', 'fenced', 'lost', 'unknown')

export const isLogAnswer = anyOf(
  fields({ kind: oneOf('appended'), result: isAppended, reason: isText }),
  fields({ kind: oneOf('rows'), rows: listOf(isRow) }),
  fields({ kind: oneOf('lastCheckpoint'), head: isState, stateBytes: isNumber }),
  fields({ kind: oneOf('checkpointPart'), state: isState }),
  /** To `putCheckpoint` and `removeSealed`. */
  fields({ kind: oneOf('done') }),
  /** Segment -1 if nothing is known; an empty text if nothing is missing. */
  fields({ kind: oneOf('known'), segment: isNumber, loss: isText }),
  fields({ kind: oneOf('confirmed'), isThere: isFlag }),
  fields({ kind: oneOf('isAlive'), alive: isFlag }),
  fields({ kind: oneOf('failed'), reason: isText }),
)
export type LogAnswer = Checked<typeof isLogAnswer>

/** Figures of the log thread since its start. */
export const isClusterLogFigures = fields({
  /** Durable appends, and the sum of their durations, seconds. */
  appends: isNumber,
  appendSecs: isNumber,
  /** Appends that lost to another node's segment, and appends with an unknown result. */
  fenced: isNumber,
  unknown: isNumber,
  connections: isNumber,
})
export type ClusterLogFigures = Checked<typeof isClusterLogFigures>

export interface ClusterFigures extends ClusterLogFigures {
  mayAnswer: boolean
  owned: number
  /** The number of nodes that it knows to be alive. */
  members: number
  /** The replication lag behind the logs of other owners, seconds: 0 for a node that owns every shard. */
  lagSecs: number
}

/** The figures of a new thread. */
export const noClusterFigures: Readonly<ClusterLogFigures> = {
  appends: 0,
  appendSecs: 0,
  fenced: 0,
  unknown: 0,
  connections: 0,
}
