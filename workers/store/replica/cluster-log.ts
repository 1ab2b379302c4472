import { assert } from '../../../src/base/assert.js'
import { fencedMessage, heldMessage, lostLogMessage } from '../../../src/protocol/fenced.js'
import type { LogAnswer, SegmentRewrite, SegmentRow } from '../../../src/protocol/cluster-log-messages.js'
import { ClusterReader } from './cluster-reader.js'
import {
  type ClusterSecret,
  type ClusterSegmentKind,
  type NextBlocks,
  type Writer,
  decodeClusterSegment,
  encodeClusterSegment,
  headerOf,
  noWriter,
} from './cluster-segment.js'
import { erasedPlaces } from '../log/erased-in-place.js'
import type { LogPosition } from '../log/file-log.js'
import { type LogLine, MissingSegment } from './log-line.js'
import { isImportedBlock } from '../tables/tables.js'
import type { RowOf } from '../log/record-check.js'
import { decodeChanges, type RowChange } from '../log/row-change.js'
import { eraseInRows } from '../log/segment-blocks.js'
import { bodied } from '../log/table-ids.js'
import type { SegmentContent } from '../log/segment.js'
import type { LogSegment, SegmentLog } from '../log/segment-log.js'

/** Whose log it is. */
export interface ClusterLogParts extends ClusterSecret {
  line: LogLine
  /** This node. */
  writer: Writer
  /** Told of the sealed rows of each segment: its bytes, and whether rows are removed by it. */
  wrote?(stateBytes: number, removes: boolean): void
}

/**
 * The log of one shard in the database of a cluster. One segment is under way at a time; groups that are appended
 * meanwhile become the next one, so that a database which takes long gets fewer and larger ones.
 */
export class ClusterLog implements SegmentLog<LogPosition> {
  readonly #parts: ClusterLogParts
  readonly #line: LogLine
  /** The last segment that is durable, and what is behind it. */
  readonly #at: ClusterReader
  /** Numbers of groups: the last that was appended, and the last that is durable. */
  #appended: number
  #durable: number
  readonly #pending: Buffer[] = []
  #underWay: { segment: number; hash: Buffer; lastGroup: number; next: NextBlocks } | undefined
  #failure: Error | undefined
  #isGivenUp = false
  /** The segment by which this node opened the log. */
  term = 0
  #told: ((error: Error | null) => void) | undefined

  /**
   * @param from up to where the store has it; undefined for a store that has nothing
   * @param rowOf what the store has
   */
  constructor(parts: ClusterLogParts, from: LogPosition | undefined, rowOf: RowOf) {
    this.#parts = parts
    this.#line = parts.line
    this.#at = new ClusterReader(parts.line, parts, { from, rowOf })
    this.#appended = this.#at.group
    this.#durable = this.#appended
    this.#line.listen((answer) => {
      this.#take(answer)
      this.#tell()
    })
  }

  get end(): LogPosition {
    return this.#at.positionAt(this.#appended)
  }

  get durable(): number {
    return this.#durable
  }

  /** The segments from the end of the store on; behind the last one this node opens the log for itself. */
  *read(): Generator<LogSegment> {
    do {
      for (const segment of this.#at.read()) {
        this.#countRead()
        yield segment
      }
      this.#countRead()
      this.#checkWhole()
      this.#checkFree()
    } while (!this.#open())
  }

  #countRead(): void {
    this.#appended = this.#at.group
    this.#durable = this.#at.group
  }

  /**
   * What was read has all that this node knows to be durable: rows may have been removed meanwhile.
   * @throws Error where it has not
   */
  #checkWhole(): void {
    if (this.#line.known() > this.#at.place.segment) throw new Lost(lostLogMessage)
  }

  /**
   * @throws Error where the node that wrote last has not given the shard up and is alive, as the table of nodes says now: the
   * shard is its own
   */
  #checkFree(): void {
    const { writer: own } = this.#parts
    const last = this.#at.writer ?? noWriter
    if (this.#at.isClosed) return
    if (last.node === '' || (last.node === own.node && last.incarnation === own.incarnation)) return
    if (this.#line.isAlive(last)) throw new Error(heldMessage(last.node))
  }

  /** Has a segment behind the end say that this node owns the shard. @returns false where another one has gone on */
  #open(): boolean {
    this.#sendBare('open')
    this.term = this.#at.place.segment
    if (this.#failure === undefined) return true
    if (this.#failure instanceof Fenced) {
      this.#failure = undefined
      this.#underWay = undefined
      return false
    }
    // What was read may have been there without a standby having it, and nobody was told of it.
    if (this.#failure instanceof Lost)
      throw new Error('The cluster’s log ends elsewhere than where it was read to: it is read again')
    throw this.#failure
  }

  /** Sends a segment that has no changes, behind all others, and waits for its answer. */
  #sendBare(kind: 'open' | 'close'): void {
    this.#send({ kind, changes: [], rewrites: [], lastGroup: this.#durable })
    while (this.#underWay !== undefined && this.#failure === undefined) this.#wait()
  }

  handOver(): void {
    this.syncNow()
    this.#sendBare('close')
    if (this.#failure !== undefined) throw this.#failure
    this.#isGivenUp = true
  }

  /** The database has as much room as it has. */
  reserve(): boolean {
    return true
  }

  append(content: SegmentContent): void {
    assert(!this.#isGivenUp, 'nothing is written to a shard that was given up')
    const bytes = Buffer.allocUnsafe(content.bytes)
    content.write(bytes)
    this.#pending.push(bytes)
    this.#appended += 1
    this.#sendNext()
  }

  syncNow(): void {
    while (this.#durable < this.#appended) {
      if (this.#failure !== undefined) throw this.#failure
      this.#wait()
    }
  }

  syncSoon(then: (error: Error | null) => void): void {
    if (this.#told !== undefined) return
    this.#told = then
    if (this.#failure !== undefined || this.#durable === this.#appended) setImmediate(() => this.#tell())
  }

  /** The log is the database: it is kept. */
  release(): void {}

  /** The segment of an erasure has removed the bodies from those before it. */
  wipe(): void {}

  async close(): Promise<void> {
    while (this.#underWay !== undefined && this.#failure === undefined) this.#wait()
    this.#line.close()
  }

  #sendNext(): void {
    if (this.#underWay !== undefined || this.#pending.length === 0 || this.#failure !== undefined) return
    const groups = this.#pending.splice(0)
    const lastGroup = this.#durable + groups.length
    const changes = lastOfEach(groups.flatMap((content) => [...decodeChanges(content)]))
    try {
      this.#send({ kind: 'group', lastGroup, ...this.#withoutErased(changes) })
    } catch (error) {
      if (!(error instanceof MissingSegment)) throw error
      // All up to here was durable.
      this.#failure = new Lost(lostLogMessage, { cause: error })
      throw this.#failure
    }
  }

  /** Changes of blocks that were written before say that records were erased: they go by their places, and are rewritten there. */
  #withoutErased(changes: readonly RowChange[]): { changes: RowChange[]; rewrites: SegmentRewrite[] } {
    const rewrites = new Map<string, SegmentRewrite>()
    const kept = changes.map((change) => {
      const { table, key, value } = change
      if (!bodied.has(table) || value === undefined || !isBefore(key, this.#at.next)) return change
      const rows = this.#wholeSegment(this.#segmentOf(key)).map((row) => ({
        ...row,
        // Another block of the same segment was erased in the same group.
        blocks: rewrites.get(`${row.segment} ${row.part}`)?.blocks ?? row.blocks,
      }))
      const { positions, rewrites: own } = eraseInRows(rows, change)
      for (const one of own) rewrites.set(`${one.segment} ${one.part}`, one)
      return erasedPlaces(change, positions)
    })
    return { changes: kept, rewrites: [...rewrites.values()] }
  }

  /** @throws MissingSegment where not all of it is there as it was written */
  #wholeSegment(segment: number): SegmentRow[] {
    const rows = this.#line.rowsOf(segment)
    try {
      decodeClusterSegment(rows, { ...this.#parts, what: 'blocks' })
    } catch (error) {
      throw new MissingSegment(`Segment ${segment} is not whole in the cluster’s log`, { cause: error })
    }
    return rows
  }

  /** The segment with which a block came: the first behind which its number is taken. */
  #segmentOf(key: Buffer): number {
    let [before, at] = [0, this.#at.place.segment]
    while (at - before > 1) {
      const middle = Math.floor((before + at) / 2)
      if (isBefore(key, headerOf(this.#line.rowOf(middle), this.#parts).next)) at = middle
      else before = middle
    }
    return at
  }

  #send(content: {
    kind: ClusterSegmentKind
    changes: readonly RowChange[]
    rewrites: SegmentRewrite[]
    lastGroup: number
  }): void {
    const { kind, changes, rewrites, lastGroup } = content
    const { writer, line } = this.#parts
    const { place: before } = this.#at
    const segment = before.segment + 1
    const next = nextBehind(this.#at.next, changes)
    const groups = lastGroup - this.#durable
    const about = { shard: line.shard, segment, kind, writer, lastGroup, groups, next, prev: before.hash }
    const { header, hash, parts } = encodeClusterSegment(about, changes, this.#parts)
    this.#underWay = { segment, hash, lastGroup, next }
    this.#line.ask({ kind: 'append', before, after: { segment, hash }, header, parts, rewrites })
    const stateBytes = parts.reduce((sum, { state }) => sum + (state?.length ?? 0), 0)
    const removes = changes.some(({ value }) => value === undefined)
    this.#parts.wrote?.(stateBytes, removes)
  }

  #take(answer: LogAnswer): void {
    assert(answer.kind === 'appended' && this.#underWay !== undefined, 'an append is answered once')
    if (answer.became === 'durable') {
      const { lastGroup, segment, hash, next } = this.#underWay
      this.#at.place = { segment, hash }
      this.#at.next = next
      this.#at.writer = this.#parts.writer
      this.#at.isClosed = false
      this.#at.group = lastGroup
      this.#durable = lastGroup
      this.#underWay = undefined
      this.#sendNext()
    } else this.#failure = failureOf(answer)
  }

  #tell(): void {
    const told = this.#told
    this.#told = undefined
    told?.(this.#failure ?? null)
  }

  /** Waits for an answer, which messages would bring later. Whoever waits is in the middle of something: others are told behind it. */
  #wait(): void {
    this.#take(this.#line.answer())
    if (this.#told !== undefined) setImmediate(() => this.#tell())
  }
}

/** Of changes of one row, the last: bodies that came and were erased in one segment would be in it otherwise. */
function lastOfEach(changes: readonly RowChange[]): RowChange[] {
  const byRow = new Map<string, RowChange>()
  for (const change of changes) byRow.set(`${change.table} ${change.key.toString('latin1')}`, change)
  return [...byRow.values()]
}

/** Whether a block has a number below the next one. */
function isBefore(key: Buffer, next: NextBlocks): boolean {
  const blockNo = key.readUIntBE(0, 6)
  return blockNo < (isImportedBlock(blockNo) ? next.imported : next.blocks)
}

/** The numbers of the next blocks behind changes. */
export function nextBehind(next: NextBlocks, changes: readonly RowChange[]): NextBlocks {
  let { blocks, imported } = next
  for (const { table, key } of changes) {
    if (!bodied.has(table)) continue
    const blockNo = key.readUIntBE(0, 6)
    if (isImportedBlock(blockNo)) imported = Math.max(imported, blockNo + 1)
    else blocks = Math.max(blocks, blockNo + 1)
  }
  return { blocks, imported }
}

/** Another node has written in its place. */
class Fenced extends Error {}

/** What it is to be written behind, or over, is gone. */
class Lost extends Error {}

function failureOf({ became, reason }: Extract<LogAnswer, { kind: 'appended' }>): Error {
  if (became === 'fenced') return new Fenced(fencedMessage)
  if (became === 'lost') return new Lost(reason === '' ? lostLogMessage : `${lostLogMessage}. ${reason}`)
  return new Error(`Nobody knows whether the cluster’s log has the last commit: ${reason}`)
}
