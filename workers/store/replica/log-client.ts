import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { assert } from '../../../src/base/assert.js'
import { lostLogMessage } from '../../../src/protocol/fenced.js'
import { limits } from '../../../src/base/limits/limits.js'
import {
  isLogAnswer,
  type LogAnswer,
  type LogRequest,
  type SegmentName,
  type SegmentRow,
  type LogChannel,
} from '../../../src/protocol/cluster-log-messages.js'

/** The interval of heartbeats while the thread waits for an answer, milliseconds. */
const WAIT_MS = 500

export class MissingSegment extends Error {}

const missing = (segment: number) => new MissingSegment(`Segment ${segment} is not in the cluster’s log`)

/** Greater than every part number. */
const PART_MAX = 2 ** 31 - 1

function bytesOf(rows: readonly SegmentRow[]): number {
  return rows.reduce((sum, { blocks, state }) => sum + blocks.length + (state?.length ?? 0), 0)
}

function segmentsOf(rows: readonly SegmentRow[]): SegmentRow[][] {
  const segments: SegmentRow[][] = []
  for (const row of rows) {
    const last = segments.at(-1)
    if (last?.[0]?.segment === row.segment) last.push(row)
    else segments.push([row])
  }
  return segments
}

/** A shard's channel to the thread of the cluster's log. It can wait for answers in shared memory. */
export class LogClient {
  readonly shard: number
  readonly #port: MessagePort
  readonly #answers: Int32Array
  readonly #ends: Int32Array
  readonly #heartbeat: () => void
  /** The number of requests that timed out, whose answers arrive before all others. */
  #timedOut = 0

  readonly #timeoutMs: number

  /**
   * @param heartbeat called while the thread waits, because a slow database does not mean that the shard
   * hangs
   * @param timeoutMs how long to wait for an answer
   */
  constructor(
    { shard, port, answers, ends }: LogChannel,
    heartbeat: () => void = () => {},
    timeoutMs: number = limits.clusterStallMs,
  ) {
    this.#timeoutMs = timeoutMs
    this.shard = shard
    this.#port = port
    this.#answers = new Int32Array(answers)
    this.#ends = new Int32Array(ends)
    this.#heartbeat = heartbeat
  }

  /** Calls `take` with each answer that arrives as a message. */
  listen(take: (message: LogAnswer) => void): void {
    this.#port.on('message', (message: unknown) => {
      assert(isLogAnswer(message), 'the log’s thread sends known answers')
      if (!this.#isLateAnswer()) take(message)
    })
  }

  send(request: LogRequest): void {
    this.#port.postMessage(request)
  }

  /** Blocks until the next answer. @throws Error after a timeout, or if the process is shutting down */
  receive(): LogAnswer {
    for (let waitedMs = 0; ;) {
      const seen = Atomics.load(this.#answers, 0)
      const received = receiveMessageOnPort(this.#port)
      if (received !== undefined) {
        assert(isLogAnswer(received.message), 'the log’s thread sends known answers')
        if (this.#isLateAnswer()) continue
        return received.message
      }
      if (Atomics.load(this.#ends, 0) !== 0) throw new Error('The process is shutting down')
      this.#heartbeat()
      const waitMs = Math.min(WAIT_MS, this.#timeoutMs)
      if (Atomics.wait(this.#answers, 0, seen, waitMs) !== 'timed-out') continue
      waitedMs += waitMs
      if (waitedMs < this.#timeoutMs) continue
      this.#timedOut += 1
      throw new Error('The thread of the cluster’s log does not respond')
    }
  }

  /** Whether an answer belongs to a request that timed out: answers arrive in the order of the requests. */
  #isLateAnswer(): boolean {
    if (this.#timedOut === 0) return false
    this.#timedOut -= 1
    return true
  }

  /**
   * Sends a request and blocks until the answer.
   * @param failing beginning of the error message if the database cannot be read
   * @throws Error if the database cannot be read, or there is no answer
   */
  request<Kind extends LogAnswer['kind']>(
    request: LogRequest,
    kind: Kind,
    failing = 'The cluster’s log cannot be read',
  ): Extract<LogAnswer, { kind: Kind }> {
    this.send(request)
    const answer = this.receive()
    if (answer.kind === 'failed') throw new Error(`${failing}: ${answer.reason}`)
    assert(isOfKind(answer, kind), `the answer to a request is of kind ${kind}`)
    return answer
  }

  /** Whether a node is alive according to the table of nodes. */
  isAlive({ node, incarnation }: { node: string; incarnation: number }): boolean {
    const request = { kind: 'isAlive', node, incarnation } as const
    return this.request(request, 'isAlive', 'The nodes of the cluster cannot be read').alive
  }

  /**
   * The last segment that this node knows to be durable; -1 if it knows none.
   * @throws Error if the log lacks it (`hasLostLog`), or the database cannot be read
   */
  durableEnd(): number {
    const failing = 'The durable end of the cluster’s log cannot be checked'
    const { loss, segment } = this.request({ kind: 'known' }, 'known', failing)
    if (loss !== '') throw new Error(`${lostLogMessage}. ${loss}`)
    return segment
  }

  /**
   * Checks whether the log has segment `there` and, if so, records an earlier or the same segment as durable.
   * Both are optional.
   * @throws Error if the database cannot be read, or the file cannot be written
   */
  confirm({ there, durable }: { there: SegmentName | undefined; durable: SegmentName | undefined }): boolean {
    if (there === undefined && durable === undefined) return true
    const request = { kind: 'confirm', there: there ?? null, durable: durable ?? null } as const
    return this.request(request, 'confirmed').isThere
  }

  /** The next rows after a segment. */
  #rows(segment: number, rows: number): SegmentRow[] {
    return this.request({ kind: 'read', after: { segment, part: PART_MAX }, rows }, 'rows').rows
  }

  /** The first row of a segment, if the log has it. */
  find(segment: number): SegmentRow | undefined {
    const [row] = this.#rows(segment - 1, 1)
    return row?.segment === segment ? row : undefined
  }

  /** The first row of a segment. @throws MissingSegment if the log does not have it */
  rowOf(segment: number): SegmentRow {
    const row = this.find(segment)
    if (row === undefined) throw missing(segment)
    return row
  }

  /** All rows of a segment. @throws MissingSegment if the log does not have it */
  rowsOf(segment: number): SegmentRow[] {
    const [rows] = this.segments(segment - 1)
    if (rows?.[0]?.segment !== segment) throw missing(segment)
    return rows
  }

  /**
   * The rows of each segment after `after`, one segment at a time. Ends at the first read that does not fill
   * a page, so that it also ends while another node writes. The rows of a segment come from one read, because
   * an erasure changes all of them.
   */
  *segments(after: number): Generator<SegmentRow[]> {
    let rows: number = limits.clusterReadRows
    for (let [last, isFull] = [after, true]; isFull;) {
      const found = this.#rows(last, rows)
      const segments = segmentsOf(found)
      // The last segment may have more rows.
      const isCut = found.length === rows
      if (isCut) segments.pop()
      // A single segment has more rows than one read.
      if (isCut && segments.length === 0) rows *= 2
      isFull = isCut || bytesOf(found) >= limits.clusterReadBytes
      last = segments.at(-1)?.[0]?.segment ?? last
      yield* segments
    }
  }

  close(): void {
    this.#port.close()
  }
}

function isOfKind<Kind extends LogAnswer['kind']>(
  answer: LogAnswer,
  kind: Kind,
): answer is Extract<LogAnswer, { kind: Kind }> {
  return answer.kind === kind
}
