import type { CheckpointPlace } from './cluster-checkpoint.js'
import { type ClusterKeys, type NextBlocks, type Writer } from './cluster-segment.js'
import type { LogPosition } from '../log/file-log.js'
import { clusterForm, type LogForm } from '../log/log-form.js'
import type { LogLine } from './log-line.js'
import { RecordCheck, type RowOf } from '../log/record-check.js'
import type { SegmentRow } from '../../../src/protocol/cluster-log-messages.js'
import { importedBlocksFrom } from '../tables/tables.js'
import { changeBytes, encodeChanges, type RowChange } from '../log/row-change.js'
import type { Segment } from '../log/segment.js'

const HASH_BYTES = 32
/** In a position of a cluster's log the offset is the number of the segment, and files have numbers from 1 on. */
const NO_FILE = 0
const noBlocks: NextBlocks = { blocks: 0, imported: importedBlocksFrom }

/** Whether a store's position is one in a cluster's log. */
export function isOfCluster({ file }: LogPosition): boolean {
  return file === NO_FILE
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
    return { number: this.#complete?.group ?? group, hash, file: NO_FILE, offset: segment }
  }

  /**
   * The segments with changes from there on, to the end of the log or to a segment.
   * @throws ErasedLater behind the last one, where a segment behind that erased a record, or none did
   */
  *read(upTo = Infinity): Generator<Segment> {
    const { segment } = this.place
    if (segment >= 0 && this.writer === undefined) this.#begin()
    for (const rows of segment < upTo ? this.#line.segments(segment) : []) {
      const changes = this.#take(rows, 'whole')
      if (changes.length > 0) yield this.#segmentOf(changes)
      if (this.place.segment >= upTo) break
    }
    this.#check.end()
  }

  /**
   * The same for a store that has nothing: the rows of a checkpoint, by which records are checked, and the blocks up to it.
   * What the segments up to there held beside blocks is in the checkpoint, and may be gone from them.
   */
  *readUpTo({ segment, hash, rows }: CheckpointPlace): Generator<Segment> {
    for (const stored of this.#line.segments(-1)) {
      const isFirst = this.place.segment < 0
      const blocks = this.#take(stored, 'blocks')
      if (isFirst) for (const changes of rows) yield this.#segmentOf(changes)
      if (blocks.length > 0) yield this.#segmentOf(blocks)
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

  #segmentOf(changes: readonly RowChange[]): Segment {
    const bytes = changes.reduce((sum, change) => sum + changeBytes(change), 0)
    const content = Buffer.allocUnsafe(bytes)
    encodeChanges(changes).write(content)
    const { group, place } = this
    return {
      kind: 'group',
      number: group,
      durable: group,
      hash: place.hash,
      prev: place.hash,
      content,
      bytes,
    }
  }
}

function otherHistory(segment: number): Error {
  return new Error(
    `Segment ${segment} of the cluster’s log does not follow what the store has: it is of another history`,
  )
}
