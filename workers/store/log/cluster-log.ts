import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits.js'
import {
  isLogAnswer,
  type LogAnswer,
  type LogRequest,
  type SegmentRewrite,
  type SegmentRow,
  type ShardLine,
} from '../../../src/protocol/cluster-log-messages.js'
import {
  type ClusterSecret,
  type ClusterSegmentKind,
  type NextBlocks,
  blockIn,
  bodied,
  decodeClusterSegment,
  encodeClusterSegment,
  nextOf,
  rewrittenRows,
} from './cluster-segment.js'
import { erasedPlaces, newlyErased } from './erased-in-place.js'
import type { LogPosition } from './file-log.js'
import { importedBlocksFrom, isImportedBlock } from '../tables.js'
import { changeBytes, decodeChanges, encodeChanges, type RowChange } from './row-change.js'
import type { Segment, SegmentContent } from './segment.js'
import type { SegmentLog } from './segment-log.js'

/** Whose log it is. */
export interface ClusterLogParts extends ClusterSecret {
  line: ShardLine
  /** The name of this node. */
  node: string
}

const HASH_BYTES = 32
/** In a position of a cluster's log the offset is the number of the segment, and files have numbers from 1 on. */
const NO_FILE = 0

/**
 * The log of one shard in the database of a cluster. One segment is under way at a time; groups that are appended
 * meanwhile become the next one, so that a database which takes long gets fewer and larger ones.
 */
export class ClusterLog implements SegmentLog<LogPosition> {
  readonly #parts: ClusterLogParts
  readonly #port: MessagePort
  readonly #answers: Int32Array
  /** The last segment that is durable. */
  #place: { segment: number; hash: Buffer }
  /** Numbers of the next blocks behind it. */
  #next: NextBlocks = noBlocks
  /** Numbers of groups: the last that was appended, and the last that is durable. */
  #appended: number
  #durable: number
  readonly #pending: Buffer[] = []
  #underWay: { segment: number; hash: Buffer; lastGroup: number; next: NextBlocks } | undefined
  #failure: Error | undefined
  #told: ((error: Error | null) => void) | undefined

  /** @param from up to where the store has it; undefined for a store that has nothing */
  constructor(parts: ClusterLogParts, from: LogPosition | undefined) {
    this.#parts = parts
    this.#port = parts.line.port
    this.#answers = new Int32Array(parts.line.answers)
    if (from !== undefined && from.file !== NO_FILE)
      throw new Error('The store has a log of its own: it belongs to no cluster')
    this.#place = { segment: from?.offset ?? -1, hash: from?.hash ?? Buffer.alloc(HASH_BYTES) }
    this.#appended = from?.number ?? 0
    this.#durable = this.#appended
    this.#port.on('message', (answer: unknown) => this.#take(answer))
  }

  get end(): LogPosition {
    const { segment, hash } = this.#place
    return { number: this.#appended, hash, file: NO_FILE, offset: segment }
  }

  get durable(): number {
    return this.#durable
  }

  /** The segments from the end of the store on; behind the last one this node opens the log for itself. */
  *read(): Generator<Segment> {
    if (this.#place.segment >= 0) this.#next = nextOf(this.#rowOf(this.#place.segment))
    do yield* this.#readOn()
    while (!this.#open())
  }

  *#readOn(): Generator<Segment> {
    for (let rows = this.#rows(); rows.length > 0; rows = this.#rows()) {
      for (const segment of segmentsOf(rows, (from) => this.#rows(from))) yield* this.#apply(segment)
    }
  }

  *#apply(rows: readonly SegmentRow[]): Generator<Segment> {
    const { about, hash, changes } = decodeClusterSegment(rows, this.#parts)
    const { shard, segment, prev } = about
    const before = this.#place
    const follows = segment === before.segment + 1 && (segment === 0 || prev.equals(before.hash))
    if (shard !== this.#parts.line.shard || !follows)
      throw new Error(
        `Segment ${segment} of the cluster’s log does not follow what the store has: it is of another history`,
      )
    this.#place = { segment, hash }
    this.#next = about.next
    if (about.kind !== 'group') return
    const bytes = changes.reduce((sum, change) => sum + changeBytes(change), 0)
    const content = Buffer.allocUnsafe(bytes)
    encodeChanges(changes).write(content)
    this.#appended = about.lastGroup
    this.#durable = about.lastGroup
    yield { kind: 'group', number: about.lastGroup, durable: about.lastGroup, hash, prev, content, bytes }
  }

  /** Has a segment behind the end say that this node owns the shard. @returns false where another one has gone on */
  #open(): boolean {
    this.#send({ kind: 'open', changes: [], rewrites: [], lastGroup: this.#durable })
    while (this.#underWay !== undefined && this.#failure === undefined) this.#wait()
    if (this.#failure === undefined) return true
    if (this.#failure instanceof Fenced) {
      this.#failure = undefined
      this.#underWay = undefined
      return false
    }
    throw this.#failure
  }

  /** The database has as much room as it has. */
  reserve(): boolean {
    return true
  }

  append(content: SegmentContent): void {
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
    this.#port.close()
  }

  #sendNext(): void {
    if (this.#underWay !== undefined || this.#pending.length === 0 || this.#failure !== undefined) return
    const groups = this.#pending.splice(0)
    const lastGroup = this.#durable + groups.length
    const changes = lastOfEach(groups.flatMap((content) => [...decodeChanges(content)]))
    this.#send({ kind: 'group', lastGroup, ...this.#withoutErased(changes) })
  }

  /** Changes of blocks that were written before say that records were erased: they go by their places, and are rewritten there. */
  #withoutErased(changes: readonly RowChange[]): { changes: RowChange[]; rewrites: SegmentRewrite[] } {
    const rewrites = new Map<string, SegmentRewrite>()
    const kept = changes.map((change) => {
      const { table, key, value } = change
      if (!bodied.has(table) || value === undefined || !isBefore(key, this.#next)) return change
      const rows = this.#rowsOf(this.#segmentOf(key)).map((row) => ({
        ...row,
        // Another block of the same segment was erased in the same group.
        blocks: rewrites.get(`${row.segment} ${row.part}`)?.blocks ?? row.blocks,
      }))
      const { positions, rewritten } = erasedIn(rows, change)
      for (const one of rewritten) rewrites.set(`${one.segment} ${one.part}`, one)
      return erasedPlaces(change, positions)
    })
    return { changes: kept, rewrites: [...rewrites.values()] }
  }

  /** The segment with which a block came: the first behind which its number is taken. */
  #segmentOf(key: Buffer): number {
    let [before, at] = [0, this.#place.segment]
    while (at - before > 1) {
      const middle = Math.floor((before + at) / 2)
      if (isBefore(key, nextOf(this.#rowOf(middle)))) at = middle
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
    const { node, line } = this.#parts
    const before = this.#place
    const segment = before.segment + 1
    const next = nextBehind(this.#next, changes)
    const groups = lastGroup - this.#durable
    const about = { shard: line.shard, segment, kind, node, lastGroup, groups, next, prev: before.hash }
    const { header, hash, parts } = encodeClusterSegment(about, changes, this.#parts)
    this.#underWay = { segment, hash, lastGroup, next }
    this.#ask({ kind: 'append', before, after: { segment, hash }, header, parts, rewrites })
  }

  #take(answer: unknown): void {
    assert(isLogAnswer(answer), 'the log’s thread answers in a way that this version knows')
    assert(answer.kind === 'appended' && this.#underWay !== undefined, 'an append is answered once')
    if (answer.became === 'durable') {
      const { lastGroup, segment, hash, next } = this.#underWay
      this.#place = { segment, hash }
      this.#next = next
      this.#durable = lastGroup
      this.#underWay = undefined
      this.#sendNext()
    } else this.#failure = failureOf(answer)
    this.#tell()
  }

  #tell(): void {
    const told = this.#told
    this.#told = undefined
    told?.(this.#failure ?? null)
  }

  /** The rows behind the end, or behind a row. */
  #rows(
    after = { segment: this.#place.segment, part: PART_MAX },
    rows: number = limits.clusterReadRows,
  ): SegmentRow[] {
    this.#ask({ kind: 'read', after: { segment: after.segment, part: after.part }, rows })
    const answer = this.#answer()
    if (answer.kind === 'failed') throw new Error(`The cluster’s log cannot be read: ${answer.reason}`)
    assert(answer.kind === 'rows', 'a read is answered with rows')
    return answer.rows
  }

  /** The first row of a segment. */
  #rowOf(segment: number): SegmentRow {
    const [row] = this.#rows({ segment: segment - 1, part: PART_MAX }, 1)
    if (row?.segment !== segment) throw new Error(`Segment ${segment} is not in the cluster’s log`)
    return row
  }

  #rowsOf(segment: number): SegmentRow[] {
    const first = this.#rowOf(segment)
    const [rows = []] = segmentsOf([first], (after) => this.#rows(after))
    return rows
  }

  #ask(request: LogRequest): void {
    this.#port.postMessage(request)
  }

  /** Waits for an answer, which messages would bring later. */
  #wait(): void {
    this.#take(this.#answer())
  }

  #answer(): LogAnswer {
    for (;;) {
      const seen = Atomics.load(this.#answers, 0)
      const received = receiveMessageOnPort(this.#port)
      if (received !== undefined) {
        assert(isLogAnswer(received.message), 'the log’s thread answers in a way that this version knows')
        return received.message
      }
      if (Atomics.wait(this.#answers, 0, seen, limits.clusterSilenceMs) === 'timed-out')
        throw new Error('The thread of the cluster’s log does not answer')
    }
  }
}

const PART_MAX = 2 ** 31 - 1
const noBlocks: NextBlocks = { blocks: 0, imported: importedBlocksFrom }

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

function nextBehind(next: NextBlocks, changes: readonly RowChange[]): NextBlocks {
  let { blocks, imported } = next
  for (const { table, key } of changes) {
    if (!bodied.has(table)) continue
    const blockNo = key.readUIntBE(0, 6)
    if (isImportedBlock(blockNo)) imported = Math.max(imported, blockNo + 1)
    else blocks = Math.max(blocks, blockNo + 1)
  }
  return { blocks, imported }
}

/** Which records of a block were erased, and the rows in which it came as they are to be. */
function erasedIn(rows: readonly SegmentRow[], change: RowChange) {
  const rewritten = rewrittenRows(rows, change)
  const before = blockIn(rows, change)
  assert(change.value !== undefined, 'a block that is erased stays')
  return { positions: newlyErased(before, change.value), rewritten }
}

/** Another node has written in its place. */
class Fenced extends Error {}

function failureOf({ became, reason }: Extract<LogAnswer, { kind: 'appended' }>): Error {
  if (became === 'fenced') return new Fenced('Another node owns the shard')
  if (became === 'lost') return new Error('The cluster’s log has lost what it had acknowledged')
  return new Error(`Nobody knows whether the cluster’s log has the last commit: ${reason}`)
}

/** The rows of one segment after the other; the rows of the last one may lie further on. */
function* segmentsOf(
  rows: readonly SegmentRow[],
  readOn: (after: { segment: number; part: number }) => SegmentRow[],
): Generator<SegmentRow[]> {
  let own: SegmentRow[] = []
  let found = rows
  for (;;) {
    for (const row of found) {
      if (own.length > 0 && own[0]?.segment !== row.segment) {
        yield own
        own = []
      }
      own.push(row)
    }
    const last = own.at(-1)
    if (last === undefined) return
    found = readOn(last)
    if (found.length === 0) return yield own
  }
}
