import {
  type CheckpointHead,
  type CheckpointPartPlace,
  type CheckpointPlace,
  decodeCheckpointHead,
  decodeCheckpointPart,
} from './cluster-checkpoint.js'
import {
  type ClusterHeader,
  type ClusterKeys,
  decodeClusterSegment,
  headerOf,
  type NextBlocks,
  noBlocks,
  type SegmentReading,
  type ReadSegment,
  type Writer,
} from './cluster-segment.js'
import type { LogPosition } from '../log/file-log.js'
import type { LogLine } from './log-line.js'
import { isOfCluster, noFile } from '../log/position.js'
import { RecordCheck, type RowOf } from '../log/record-check.js'
import type { RowChange } from '../log/row-change.js'
import type { LogSegment, SegmentLog } from '../log/segment-log.js'
import type { SegmentRow } from '../../../src/protocol/cluster-log-messages.js'

const HASH_BYTES = 32

/** The form in which a log is written; each function throws an Error for what a node of the cluster did not write. */
export interface LogForm {
  segment(rows: readonly SegmentRow[], reading: SegmentReading): ReadSegment
  header(row: SegmentRow, keys: ClusterKeys): ClusterHeader
  checkpointHead(head: Uint8Array, keys: ClusterKeys): CheckpointHead
  checkpointPart(named: CheckpointPartPlace, state: Uint8Array, keys: ClusterKeys): RowChange[]
}

/** The form that nodes write and read. */
export const clusterForm: LogForm = {
  segment: decodeClusterSegment,
  header: headerOf,
  checkpointHead: decodeCheckpointHead,
  checkpointPart: decodeCheckpointPart,
}

/** The store that is brought up to a log. */
export interface StoreBehind {
  /** Up to where it has the log; undefined for a store that has nothing. */
  from: LogPosition | undefined
  /** What it has of what was read. */
  rowOf: RowOf
  /** The form of the log; that of nodes when absent. */
  form?: LogForm | undefined
}

/** Reads a shard's log in the database of a cluster, segment by segment, and knows how far it is. */
export class ClusterReader {
  readonly #line: LogLine
  readonly #secret: ClusterKeys
  readonly #form: LogForm
  readonly #check: RecordCheck
  /** The last segment that was read. */
  place: { segment: number; hash: Buffer }
  /** Numbers of the next blocks behind it. */
  next: NextBlocks = noBlocks
  /** Who wrote it. */
  writer: Writer | undefined
  /** Whether it says that its writer has given the shard up. */
  isClosed = false
  /** The number of the last group up to there. */
  group: number
  /** The last segment before one that lacks a body whose erasure has not come yet. */
  #complete: { segment: number; hash: Buffer; group: number } | undefined

  constructor(line: LogLine, secret: ClusterKeys, { from, rowOf, form = clusterForm }: StoreBehind) {
    this.#line = line
    this.#secret = secret
    this.#form = form
    this.#check = new RecordCheck(rowOf)
    if (from !== undefined && !isOfCluster(from))
      throw new Error('The store has a log of its own: it belongs to no cluster')
    this.place = { segment: from?.offset ?? -1, hash: from?.hash ?? Buffer.alloc(HASH_BYTES) }
    this.group = from?.number ?? 0
  }

  /**
   * Where a store is that has everything up to here, and `group` groups. Where the erasure of a body has not come yet, that is
   * before the segment of the body: a reading that is cut off begins there again.
   */
  positionAt(group: number): LogPosition {
    const { segment, hash } = this.#complete ?? this.place
    return { number: this.#complete?.group ?? group, hash, file: noFile, offset: segment }
  }

  /**
   * The segments with changes from there on, to the end of the log or to a segment.
   * @throws ErasedLater behind the last one, where a segment behind that erased a record, or none did
   */
  *read(upTo = Infinity): Generator<LogSegment> {
    const { segment } = this.place
    if (segment >= 0 && this.writer === undefined) this.#begin()
    for (const rows of segment < upTo ? this.#line.segments(segment) : []) {
      const changes = this.#take(rows, 'whole')
      if (changes.length > 0) yield { changes }
      if (this.place.segment >= upTo) break
    }
    this.#check.end()
  }

  /**
   * The same for a store that has nothing: the rows of a checkpoint, by which records are checked, and the blocks up to it.
   * What the segments up to there held beside blocks is in the checkpoint, and may be gone from them.
   */
  *readUpTo({ segment, hash, rows }: CheckpointPlace): Generator<LogSegment> {
    for (const stored of this.#line.segments(-1)) {
      const isFirst = this.place.segment < 0
      const blocks = this.#take(stored, 'blocks')
      if (isFirst) for (const changes of rows) yield { changes }
      if (blocks.length > 0) yield { changes: blocks }
      if (this.place.segment === segment) break
    }
    if (this.place.segment !== segment || !this.place.hash.equals(hash))
      throw new Error(`The checkpoint at segment ${segment} is of another history than the cluster’s log`)
  }

  /** Learns from the segment that the store has last what that says. */
  #begin(): void {
    const row = this.#line.rowOf(this.place.segment)
    if (!this.place.hash.equals(row.hash)) throw otherHistory(row.segment)
    const { next, writer, kind } = this.#form.header(row, this.#secret)
    this.next = next
    this.writer = writer
    this.isClosed = kind === 'close'
  }

  /** Checks that a segment is the next one, and goes on to it. */
  #take(rows: readonly SegmentRow[], what: 'whole' | 'blocks'): RowChange[] {
    const { about, hash, changes } = this.#form.segment(rows, { ...this.#secret, what, check: this.#check })
    const { shard, segment, prev } = about
    const before = this.place
    const follows = segment === before.segment + 1 && (segment === 0 || prev.equals(before.hash))
    if (shard !== this.#line.shard || !follows) throw otherHistory(segment)
    this.#complete = this.#check.isWaiting ? (this.#complete ?? { ...before, group: this.group }) : undefined
    this.place = { segment, hash }
    this.next = about.next
    this.writer = about.writer
    this.isClosed = about.kind === 'close'
    this.group = about.lastGroup
    return changes
  }
}

/** The log of a shard as a node has it that only reads it. */
export class FollowedLog implements SegmentLog<LogPosition> {
  readonly #reader: ClusterReader
  readonly #from: CheckpointPlace | undefined
  readonly #upTo: number

  /** @param from the checkpoint that an empty store begins with; @param upTo the last segment that is read */
  constructor(reader: ClusterReader, from?: CheckpointPlace, upTo = Infinity) {
    this.#reader = reader
    this.#from = from
    this.#upTo = upTo
  }

  get end(): LogPosition {
    return this.#reader.positionAt(this.#reader.group)
  }

  get durable(): number {
    return this.#reader.group
  }

  *read(): Generator<LogSegment> {
    if (this.#from !== undefined) yield* this.#reader.readUpTo(this.#from)
    yield* this.#reader.read(this.#upTo)
  }

  reserve(): boolean {
    return false
  }

  append(): never {
    throw new Error('A log that is followed is not written to')
  }

  syncNow(): void {}

  syncSoon(then: (error: Error | null) => void): void {
    setImmediate(() => then(null))
  }

  release(): void {}

  wipe(): void {}

  handOver(): void {}

  /** Others may use the line. */
  async close(): Promise<void> {}
}

function otherHistory(segment: number): Error {
  return new Error(
    `Segment ${segment} of the cluster’s log does not follow what the store has: it is of another history`,
  )
}
