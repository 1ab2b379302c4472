import type { CheckpointRows } from './cluster-checkpoint.js'
import {
  type ClusterKeys,
  decodeClusterSegment,
  decodeHeader,
  type NextBlocks,
  noBlocks,
  type Writer,
} from './cluster-segment.js'
import type { LogPosition } from '../log/file-log.js'
import type { LogClient } from './log-client.js'
import { isOfCluster, noFile } from '../log/position.js'
import { RecordCheck, type RowOf } from '../log/record-check.js'
import type { RowChange } from '../log/row-change.js'
import type { LogSegment, SegmentLog } from '../log/segment-log.js'
import type { SegmentRow } from '../../../src/protocol/cluster-log-messages.js'

const HASH_BYTES = 32

export interface StoreToCatchUp {
  /** The store's position in the log; undefined for an empty store. */
  from: LogPosition | undefined
  rowOf: RowOf
}

/** Reads a shard's log in the database of a cluster, segment by segment, and tracks its position. */
export class ClusterReader {
  readonly #client: LogClient
  readonly #secret: ClusterKeys
  readonly #check: RecordCheck
  /** The last segment that was read. */
  position: { segment: number; hash: Buffer }
  /** Numbers of the next blocks after it. */
  next: NextBlocks = noBlocks
  /** The node that wrote it. */
  writer: Writer | undefined
  /** Whether its writer has closed the log, so that another node may open it. */
  isClosed = false
  /** The number of the last group in or before it. */
  group: number
  /** The last segment before the first one with a missing body whose erasure was not read yet. */
  #complete: { segment: number; hash: Buffer; group: number } | undefined

  constructor(client: LogClient, secret: ClusterKeys, { from, rowOf }: StoreToCatchUp) {
    this.#client = client
    this.#secret = secret
    this.#check = new RecordCheck(rowOf)
    if (from !== undefined && !isOfCluster(from))
      throw new Error('The store has its own log files: it does not belong to a cluster')
    this.position = { segment: from?.offset ?? -1, hash: from?.hash ?? Buffer.alloc(HASH_BYTES) }
    this.group = from?.number ?? 0
  }

  /**
   * The log position of a store that has `group` groups. If the erasure of a missing body was not read yet,
   * the position is before the segment of the body, so that an interrupted reading resumes there.
   */
  positionAt(group: number): LogPosition {
    const { segment, hash } = this.#complete ?? this.position
    return { number: this.#complete?.group ?? group, hash, file: noFile, offset: segment }
  }

  /**
   * The segments with changes after the current one, up to the end of the log or to segment `upTo`. An
   * erasure removes a body from an earlier segment while the log is read. So if a body is missing at `upTo`,
   * the later segments are read as well, until one has its erasure.
   * @throws Error at the end of the log, if a body is missing that none of the segments erased
   */
  *read(upTo = Infinity): Generator<LogSegment> {
    if (this.position.segment >= 0 && this.writer === undefined) this.#begin()
    const isEnough = () => this.position.segment >= upTo && !this.#check.awaitsErasure
    for (const rows of isEnough() ? [] : this.#client.segments(this.position.segment)) {
      const changes = this.#take(rows, 'whole')
      if (changes.length > 0) yield { changes }
      if (isEnough()) break
    }
    this.#check.finish()
  }

  /**
   * The same for an empty store: the rows of a checkpoint, with which records are checked, and the blocks of
   * the segments up to it. The other rows of these segments are in the checkpoint, and may have been deleted
   * from the segments.
   */
  *readUpTo({ segment, hash, rows }: CheckpointRows): Generator<LogSegment> {
    for (const stored of this.#client.segments(-1)) {
      const isFirst = this.position.segment < 0
      const blocks = this.#take(stored, 'blocks')
      if (isFirst) for (const changes of rows) yield { changes }
      if (blocks.length > 0) yield { changes: blocks }
      if (this.position.segment === segment) break
    }
    if (this.position.segment !== segment || !this.position.hash.equals(hash))
      throw new Error(
        `The checkpoint at segment ${segment} does not match the cluster’s log: it is of another history`,
      )
  }

  /** Reads the header of the store's last segment. */
  #begin(): void {
    const row = this.#client.rowOf(this.position.segment)
    if (!this.position.hash.equals(row.hash)) throw otherHistory(row.segment)
    const { next, writer, kind } = decodeHeader(row, this.#secret)
    this.next = next
    this.writer = writer
    this.isClosed = kind === 'close'
  }

  /** Checks that a segment is the next one, and advances to it. */
  #take(rows: readonly SegmentRow[], what: 'whole' | 'blocks'): RowChange[] {
    const { about, hash, changes } = decodeClusterSegment(rows, { ...this.#secret, what, check: this.#check })
    const { shard, segment, prev } = about
    const before = this.position
    const follows = segment === before.segment + 1 && (segment === 0 || prev.equals(before.hash))
    if (shard !== this.#client.shard || !follows) throw otherHistory(segment)
    this.#complete = this.#check.awaitsErasure
      ? (this.#complete ?? { ...before, group: this.group })
      : undefined
    this.position = { segment, hash }
    this.next = about.next
    this.writer = about.writer
    this.isClosed = about.kind === 'close'
    this.group = about.lastGroup
    return changes
  }
}

/** The log of a shard for a node that only reads it. */
export class FollowedLog implements SegmentLog<LogPosition> {
  readonly #reader: ClusterReader
  readonly #from: CheckpointRows | undefined
  readonly #upTo: number

  /** @param from the checkpoint for an empty store; @param upTo the last segment to read, as in `read` */
  constructor(reader: ClusterReader, from?: CheckpointRows, upTo = Infinity) {
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
    throw new Error('A followed log is read-only')
  }

  syncNow(): void {}

  syncSoon(then: (error: Error | null) => void): void {
    setImmediate(() => then(null))
  }

  release(): void {}

  wipe(): void {}

  transfer(): void {}

  /** Does nothing: the channel is shared. */
  async close(): Promise<void> {}
}

function otherHistory(segment: number): Error {
  return new Error(
    `Segment ${segment} of the cluster’s log does not follow the last segment of the store: it is of another history`,
  )
}
