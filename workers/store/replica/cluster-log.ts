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
  decodeHeader,
  noWriter,
} from './cluster-segment.js'
import { encodeErasedPositions } from '../log/erased-positions.js'
import type { LogPosition } from '../log/file-log.js'
import { type LogClient, MissingSegment } from './log-client.js'
import { isImportedBlock } from '../tables/tables.js'
import type { RowOf } from '../log/record-check.js'
import { decodeChanges, type RowChange } from '../log/row-change.js'
import { eraseInRows } from '../log/segment-blocks.js'
import { blockTableIds } from '../../../src/store-files/store-tables.js'
import type { SegmentContent } from '../log/segment.js'
import type { LogSegment, SegmentLog } from '../log/segment-log.js'

/** Options of a shard's log in a cluster. */
export interface ClusterLogOptions extends ClusterSecret {
  client: LogClient
  writer: Writer
  /** Called for each segment with the bytes of its sealed rows, and whether it removes rows. */
  segmentWritten?(stateBytes: number, removes: boolean): void
}

/**
 * The log of one shard in the database of a cluster. One segment is in flight at a time. Groups that are
 * appended in the meantime are batched into the next segment, so that a slow database gets fewer and larger
 * segments.
 */
export class ClusterLog implements SegmentLog<LogPosition> {
  readonly #options: ClusterLogOptions
  readonly #client: LogClient
  /** Its position is the last durable segment. */
  readonly #reader: ClusterReader
  /** The numbers of the last appended and the last durable group. */
  #appended: number
  #durable: number
  readonly #pending: Buffer[] = []
  #inFlight: { segment: number; hash: Buffer; lastGroup: number; next: NextBlocks } | undefined
  #failure: Error | undefined
  #isTransferred = false
  /** The segment with which this node opened the log. */
  term = 0
  #onSynced: ((error: Error | null) => void) | undefined

  /**
   * @param from the store's position in the log; undefined for an empty store
   * @param rowOf reads rows of the store
   */
  constructor(options: ClusterLogOptions, from: LogPosition | undefined, rowOf: RowOf) {
    this.#options = options
    this.#client = options.client
    this.#reader = new ClusterReader(options.client, options, { from, rowOf })
    this.#appended = this.#reader.group
    this.#durable = this.#appended
    this.#client.listen((answer) => {
      this.#take(answer)
      this.#notify()
    })
  }

  get end(): LogPosition {
    return this.#reader.positionAt(this.#appended)
  }

  get durable(): number {
    return this.#durable
  }

  /** The segments after the store's position. After the last one, this node opens the log. */
  *read(): Generator<LogSegment> {
    do {
      for (const segment of this.#reader.read()) {
        this.#countRead()
        yield segment
      }
      this.#countRead()
      this.#assertComplete()
      this.#assertUnowned()
    } while (!this.#open())
  }

  #countRead(): void {
    this.#appended = this.#reader.group
    this.#durable = this.#reader.group
  }

  /**
   * Rows may have been removed from the database during the reading.
   * @throws Error if the log that was read lacks segments that this node knows to be durable
   */
  #assertComplete(): void {
    const [durable, { segment }] = [this.#client.durableEnd(), this.#reader.position]
    if (durable > segment)
      throw new Lost(`${lostLogMessage}. Segment ${durable} is durable, but ${segment} was the last one read`)
  }

  /**
   * @throws Error if the last writer still owns the shard: it has not closed the log, and the table of nodes
   * shows it alive
   */
  #assertUnowned(): void {
    const { writer: own } = this.#options
    const last = this.#reader.writer ?? noWriter
    if (this.#reader.isClosed) return
    if (last.node === '' || (last.node === own.node && last.incarnation === own.incarnation)) return
    if (this.#client.isAlive(last)) throw new Error(heldMessage(last.node))
  }

  /**
   * Appends a segment that makes this node the owner of the shard.
   * @returns false if another node has appended first
   */
  #open(): boolean {
    this.#appendEmpty('open')
    this.term = this.#reader.position.segment
    if (this.#failure === undefined) return true
    if (this.#failure instanceof Fenced) {
      this.#failure = undefined
      this.#inFlight = undefined
      return false
    }
    // The last segments that were read may not have been on a standby yet, and were never acknowledged.
    if (this.#failure instanceof Lost)
      throw new Error('The end of the cluster’s log has changed since it was read: reading it again')
    throw this.#failure
  }

  /** Appends a segment without changes, and waits for the answer. */
  #appendEmpty(kind: 'open' | 'close'): void {
    this.#send({ kind, changes: [], rewrites: [], lastGroup: this.#durable })
    while (this.#inFlight !== undefined && this.#failure === undefined) this.#wait()
  }

  transfer(): void {
    this.syncNow()
    this.#appendEmpty('close')
    if (this.#failure !== undefined) throw this.#failure
    this.#isTransferred = true
  }

  /** Always true: the free space of the database is not known. */
  reserve(): boolean {
    return true
  }

  append(content: SegmentContent): void {
    assert(!this.#isTransferred, 'nothing is appended after a shard was transferred')
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
    if (this.#onSynced !== undefined) return
    this.#onSynced = then
    if (this.#failure !== undefined || this.#durable === this.#appended) setImmediate(() => this.#notify())
  }

  /** Does nothing: the database keeps all segments. */
  release(): void {}

  /** Does nothing: the append of an erasure has already removed the bodies from earlier segments. */
  wipe(): void {}

  async close(): Promise<void> {
    while (this.#inFlight !== undefined && this.#failure === undefined) this.#wait()
    this.#client.close()
  }

  #sendNext(): void {
    if (this.#inFlight !== undefined || this.#pending.length === 0 || this.#failure !== undefined) return
    const groups = this.#pending.splice(0)
    const lastGroup = this.#durable + groups.length
    const changes = lastOfEach(groups.flatMap((content) => [...decodeChanges(content)]))
    try {
      this.#send({ kind: 'group', lastGroup, ...this.#withoutErased(changes) })
    } catch (error) {
      if (!(error instanceof MissingSegment)) throw error
      // All earlier segments were durable.
      this.#failure = new Lost(`${lostLogMessage}. ${error.message}`, { cause: error })
      throw this.#failure
    }
  }

  /**
   * A change of an existing block erases records. It is replaced by their positions, and the block's segment
   * is rewritten.
   */
  #withoutErased(changes: readonly RowChange[]): { changes: RowChange[]; rewrites: SegmentRewrite[] } {
    const rewrites = new Map<string, SegmentRewrite>()
    const encoded = changes.map((change) => {
      const { table, key, value } = change
      if (!blockTableIds.has(table) || value === undefined || !isBefore(key, this.#reader.next)) return change
      const rows = this.#completeSegment(this.#segmentOf(key)).map((row) => ({
        ...row,
        // Another block of this segment may have been erased in the same group.
        blocks: rewrites.get(`${row.segment} ${row.part}`)?.blocks ?? row.blocks,
      }))
      const { positions, rewrites: rewritten } = eraseInRows(rows, change)
      for (const one of rewritten) rewrites.set(`${one.segment} ${one.part}`, one)
      return encodeErasedPositions(change, positions)
    })
    return { changes: encoded, rewrites: [...rewrites.values()] }
  }

  /** @throws MissingSegment if a part of it is missing or was changed */
  #completeSegment(segment: number): SegmentRow[] {
    const rows = this.#client.rowsOf(segment)
    try {
      decodeClusterSegment(rows, { ...this.#options, what: 'blocks' })
    } catch (error) {
      throw new MissingSegment(`Segment ${segment} of the cluster’s log is incomplete`, { cause: error })
    }
    return rows
  }

  /** The segment that contains a block: the first after which its number is in use. */
  #segmentOf(key: Buffer): number {
    let [before, at] = [0, this.#reader.position.segment]
    while (at - before > 1) {
      const middle = Math.floor((before + at) / 2)
      if (isBefore(key, decodeHeader(this.#client.rowOf(middle), this.#options).next)) at = middle
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
    const { writer, client } = this.#options
    const { position: before } = this.#reader
    const segment = before.segment + 1
    const next = nextBehind(this.#reader.next, changes)
    const groups = lastGroup - this.#durable
    const about = { shard: client.shard, segment, kind, writer, lastGroup, groups, next, prev: before.hash }
    const { header, hash, parts } = encodeClusterSegment(about, changes, this.#options)
    this.#inFlight = { segment, hash, lastGroup, next }
    this.#client.send({ kind: 'append', before, after: { segment, hash }, header, parts, rewrites })
    const stateBytes = parts.reduce((sum, { state }) => sum + (state?.length ?? 0), 0)
    const removes = changes.some(({ value }) => value === undefined)
    this.#options.segmentWritten?.(stateBytes, removes)
  }

  #take(answer: LogAnswer): void {
    assert(answer.kind === 'appended' && this.#inFlight !== undefined, 'each append has one answer')
    if (answer.result === 'durable') {
      const { lastGroup, segment, hash, next } = this.#inFlight
      this.#reader.position = { segment, hash }
      this.#reader.next = next
      this.#reader.writer = this.#options.writer
      this.#reader.isClosed = false
      this.#reader.group = lastGroup
      this.#durable = lastGroup
      this.#inFlight = undefined
      this.#sendNext()
    } else this.#failure = failureOf(answer)
  }

  #notify(): void {
    const onSynced = this.#onSynced
    this.#onSynced = undefined
    onSynced?.(this.#failure ?? null)
  }

  /**
   * Blocks until the next answer. The caller of `syncSoon` is notified later, because this call may be in the
   * middle of its work.
   */
  #wait(): void {
    this.#take(this.#client.receive())
    if (this.#onSynced !== undefined) setImmediate(() => this.#notify())
  }
}

/**
 * The last change of each row, so that the segment does not contain bodies that were written and erased
 * within it.
 */
function lastOfEach(changes: readonly RowChange[]): RowChange[] {
  const byRow = new Map<string, RowChange>()
  for (const change of changes) byRow.set(`${change.table} ${change.key.toString('latin1')}`, change)
  return [...byRow.values()]
}

/** Whether a block existed before this segment. */
function isBefore(key: Buffer, next: NextBlocks): boolean {
  const blockNo = key.readUIntBE(0, 6)
  return blockNo < (isImportedBlock(blockNo) ? next.imported : next.blocks)
}

/** The numbers of the next blocks after changes. */
export function nextBehind(next: NextBlocks, changes: readonly RowChange[]): NextBlocks {
  let { blocks, imported } = next
  for (const { table, key } of changes) {
    if (!blockTableIds.has(table)) continue
    const blockNo = key.readUIntBE(0, 6)
    if (isImportedBlock(blockNo)) imported = Math.max(imported, blockNo + 1)
    else blocks = Math.max(blocks, blockNo + 1)
  }
  return { blocks, imported }
}

/** Another node has appended to the log. */
class Fenced extends Error {}

/** The previous segment, or one to rewrite, is missing. */
class Lost extends Error {}

function failureOf({ result: became, reason }: Extract<LogAnswer, { kind: 'appended' }>): Error {
  if (became === 'fenced') return new Fenced(fencedMessage)
  if (became === 'lost') return new Lost(reason === '' ? lostLogMessage : `${lostLogMessage}. ${reason}`)
  return new Error(`It is unknown whether the cluster’s log has the last commit: ${reason}`)
}
