import type { CheckpointPlace } from './cluster-checkpoint.js'
import {
  type ClusterSecret,
  type NextBlocks,
  type Writer,
  decodeClusterSegment,
  headerOf,
} from './cluster-segment.js'
import type { LogPosition } from './file-log.js'
import type { LogLine } from './log-line.js'
import { importedBlocksFrom } from '../tables.js'
import { changeBytes, encodeChanges, type RowChange } from './row-change.js'
import type { Segment } from './segment.js'

const HASH_BYTES = 32
/** In a position of a cluster's log the offset is the number of the segment, and files have numbers from 1 on. */
const NO_FILE = 0
const noBlocks: NextBlocks = { blocks: 0, imported: importedBlocksFrom }

/** Whether a store's position is one in a cluster's log. */
export function isOfCluster({ file }: LogPosition): boolean {
  return file === NO_FILE
}

/** Reads a shard's log in the database of a cluster, segment by segment, and knows how far it is. */
export class ClusterReader {
  readonly #line: LogLine
  readonly #secret: ClusterSecret
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

  /** @param from up to where the store has it; undefined for a store that has nothing */
  constructor(line: LogLine, secret: ClusterSecret, from: LogPosition | undefined) {
    this.#line = line
    this.#secret = secret
    if (from !== undefined && !isOfCluster(from))
      throw new Error('The store has a log of its own: it belongs to no cluster')
    this.place = { segment: from?.offset ?? -1, hash: from?.hash ?? Buffer.alloc(HASH_BYTES) }
    this.group = from?.number ?? 0
  }

  /** Where a store is that has everything up to here, and `group` groups. */
  positionAt(group: number): LogPosition {
    return { number: group, hash: this.place.hash, file: NO_FILE, offset: this.place.segment }
  }

  /** The segments with changes from there on, to the end of the log or to a segment. */
  *read(upTo = Infinity): Generator<Segment> {
    const { segment } = this.place
    if (segment >= upTo) return
    if (segment >= 0 && this.writer === undefined) {
      const { next, writer, kind } = headerOf(this.#line.rowOf(segment), this.#secret.masterSeed)
      this.next = next
      this.writer = writer
      this.isClosed = kind === 'close'
    }
    for (const rows of this.#line.segments(segment)) {
      const changes = this.#take(rows, 'whole')
      if (changes.length > 0) yield this.#segmentOf(changes)
      if (this.place.segment >= upTo) return
    }
  }

  /**
   * The same for a store that has nothing: the blocks up to a checkpoint, and its rows. What the segments up to there held
   * beside blocks is in the checkpoint, and may be gone from them.
   */
  *readUpTo({ segment, hash, rows }: CheckpointPlace): Generator<Segment> {
    for (const stored of this.#line.segments(-1)) {
      const blocks = this.#take(stored, 'blocks')
      if (blocks.length > 0) yield this.#segmentOf(blocks)
      if (this.place.segment === segment) break
    }
    if (this.place.segment !== segment || !this.place.hash.equals(hash))
      throw new Error(`The checkpoint at segment ${segment} is of another history than the cluster’s log`)
    for (const changes of rows) yield this.#segmentOf(changes)
  }

  /** Checks that a segment is the next one, and goes on to it. */
  #take(rows: Parameters<typeof decodeClusterSegment>[0], what: 'whole' | 'blocks'): RowChange[] {
    const { about, hash, changes } = decodeClusterSegment(rows, { ...this.#secret, what })
    const { shard, segment, prev } = about
    const before = this.place
    const follows = segment === before.segment + 1 && (segment === 0 || prev.equals(before.hash))
    if (shard !== this.#line.shard || !follows)
      throw new Error(
        `Segment ${segment} of the cluster’s log does not follow what the store has: it is of another history`,
      )
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
