import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits.js'
import {
  isLogAnswer,
  type LogAnswer,
  type LogRequest,
  type SegmentRow,
  type ShardLine,
} from '../../../src/protocol/cluster-log-messages.js'
import {
  type ClusterSecret,
  type ClusterSegmentKind,
  decodeClusterSegment,
  encodeClusterSegment,
} from './cluster-segment.js'
import type { LogPosition } from './file-log.js'
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
  /** Numbers of groups: the last that was appended, and the last that is durable. */
  #appended: number
  #durable: number
  readonly #pending: Buffer[] = []
  #underWay: { segment: number; hash: Buffer; lastGroup: number } | undefined
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
    this.#send('open', [], this.#durable)
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

  wipe(): void {
    throw new Error('Erasing from the log of a cluster is not there yet')
  }

  async close(): Promise<void> {
    while (this.#underWay !== undefined && this.#failure === undefined) this.#wait()
    this.#port.close()
  }

  #sendNext(): void {
    if (this.#underWay !== undefined || this.#pending.length === 0 || this.#failure !== undefined) return
    const changes = this.#pending.flatMap((content) => [...decodeChanges(content)])
    const groups = this.#pending.splice(0).length
    this.#send('group', changes, this.#durable + groups)
  }

  #send(kind: ClusterSegmentKind, changes: readonly RowChange[], lastGroup: number): void {
    const { node, line } = this.#parts
    const before = this.#place
    const segment = before.segment + 1
    const about = { shard: line.shard, segment, kind, node, lastGroup, groups: lastGroup - this.#durable }
    const { header, hash, parts } = encodeClusterSegment(
      { ...about, prev: before.hash },
      changes,
      this.#parts,
    )
    this.#underWay = { segment, hash, lastGroup }
    this.#ask({ kind: 'append', before, after: { segment, hash }, header, parts })
  }

  #take(answer: unknown): void {
    assert(isLogAnswer(answer), 'the log’s thread answers in a way that this version knows')
    assert(answer.kind === 'appended' && this.#underWay !== undefined, 'an append is answered once')
    if (answer.became === 'durable') {
      const { lastGroup, segment, hash } = this.#underWay
      this.#place = { segment, hash }
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
  #rows(after = { segment: this.#place.segment, part: Number.MAX_SAFE_INTEGER }): SegmentRow[] {
    this.#ask({ kind: 'read', after: { ...after, part: Math.min(after.part, PART_MAX) } })
    const answer = this.#answer()
    if (answer.kind === 'failed') throw new Error(`The cluster’s log cannot be read: ${answer.reason}`)
    assert(answer.kind === 'rows', 'a read is answered with rows')
    return answer.rows
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
