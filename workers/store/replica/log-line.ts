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
  type ShardLine,
} from '../../../src/protocol/cluster-log-messages.js'

/** A row of the log: its segment, and its number within it. */
export interface RowPlace {
  segment: number
  part: number
}

/** How long the thread waits at once before it says that it does, milliseconds. */
const WAIT_MS = 500

/** A segment is not in the log. */
export class MissingSegment extends Error {}

const missing = (segment: number) => new MissingSegment(`Segment ${segment} is not in the cluster’s log`)

/** Behind all rows of a segment. */
const PART_MAX = 2 ** 31 - 1

/** Whether a read brought as much as it may, so that there may be more. */
function mayHaveMore(rows: readonly SegmentRow[]): boolean {
  const bytes = rows.reduce((sum, { blocks, state }) => sum + blocks.length + (state?.length ?? 0), 0)
  return rows.length === limits.clusterReadRows || bytes >= limits.clusterReadBytes
}

/** A shard's end of its line to the thread of the cluster's log, with answers that are waited for in shared memory. */
export class LogLine {
  readonly shard: number
  readonly #port: MessagePort
  readonly #answers: Int32Array
  readonly #ends: Int32Array
  readonly #beat: () => void
  /** Answers that nobody waits for any more, and that come before the others. */
  #givenUp = 0

  readonly #silenceMs: number

  /**
   * @param beat called while it waits: that the database takes long does not mean that the shard hangs
   * @param silenceMs how long it waits for an answer
   */
  constructor(
    { shard, port, answers, ends }: ShardLine,
    beat: () => void = () => {},
    silenceMs: number = limits.clusterSilenceMs,
  ) {
    this.#silenceMs = silenceMs
    this.shard = shard
    this.#port = port
    this.#answers = new Int32Array(answers)
    this.#ends = new Int32Array(ends)
    this.#beat = beat
  }

  /** Has answers that nobody waits for given to `take`, as messages. */
  listen(take: (answer: LogAnswer) => void): void {
    this.#port.on('message', (answer: unknown) => {
      assert(isLogAnswer(answer), 'the log’s thread answers in a way that this version knows')
      if (!this.#wasGivenUp()) take(answer)
    })
  }

  ask(request: LogRequest): void {
    this.#port.postMessage(request)
  }

  /** Waits for an answer, which messages would bring later. @throws Error when there is none for long, or the process ends */
  answer(): LogAnswer {
    for (let waitedMs = 0; ;) {
      const seen = Atomics.load(this.#answers, 0)
      const received = receiveMessageOnPort(this.#port)
      if (received !== undefined) {
        assert(isLogAnswer(received.message), 'the log’s thread answers in a way that this version knows')
        if (this.#wasGivenUp()) continue
        return received.message
      }
      if (Atomics.load(this.#ends, 0) !== 0) throw new Error('The process ends')
      this.#beat()
      const waitMs = Math.min(WAIT_MS, this.#silenceMs)
      if (Atomics.wait(this.#answers, 0, seen, waitMs) !== 'timed-out') continue
      waitedMs += waitMs
      if (waitedMs < this.#silenceMs) continue
      this.#givenUp += 1
      throw new Error('The thread of the cluster’s log does not answer')
    }
  }

  /** Whether an answer that has come is one of those: they come in the order in which they were asked for. */
  #wasGivenUp(): boolean {
    if (this.#givenUp === 0) return false
    this.#givenUp -= 1
    return true
  }

  /**
   * Asks, and waits for the answer.
   * @param failing what is the matter where the database cannot be read
   * @throws Error when the database cannot be read, or there is no answer
   */
  request<Kind extends LogAnswer['kind']>(
    request: LogRequest,
    kind: Kind,
    failing = 'The cluster’s log cannot be read',
  ): Extract<LogAnswer, { kind: Kind }> {
    this.ask(request)
    const answer = this.answer()
    if (answer.kind === 'failed') throw new Error(`${failing}: ${answer.reason}`)
    assert(isOfKind(answer, kind), `a request is answered by ${kind}`)
    return answer
  }

  /** Whether a node is alive, as the table of nodes says now. */
  isAlive({ node, incarnation }: { node: string; incarnation: number }): boolean {
    const request = { kind: 'isAlive', node, incarnation } as const
    return this.request(request, 'isAlive', 'The nodes of the cluster cannot be read').alive
  }

  /**
   * The last segment that this node knows to be durable; -1 where it knows none.
   * @throws Error where the log lacks it (`hasLostLog`), or the database cannot be read
   */
  known(): number {
    const failing = 'What is known of the cluster’s log cannot be compared with it'
    const { loss, segment } = this.request({ kind: 'known' }, 'known', failing)
    if (loss !== '') throw new Error(`${lostLogMessage}. ${loss}`)
    return segment
  }

  /**
   * Looks whether the log has a segment, and notes another one, up to it, as durable where it has; each where it is given.
   * @throws Error when the database cannot be read, or the file not be written
   */
  confirm({ there, durable }: { there: SegmentName | undefined; durable: SegmentName | undefined }): boolean {
    if (there === undefined && durable === undefined) return true
    const request = { kind: 'confirm', there: there ?? null, durable: durable ?? null } as const
    return this.request(request, 'confirmed').isThere
  }

  /** The next rows behind a place. */
  rows({ segment, part }: RowPlace, rows: number = limits.clusterReadRows): SegmentRow[] {
    return this.request({ kind: 'read', after: { segment, part }, rows }, 'rows').rows
  }

  /** The first row of a segment, where it is there. */
  find(segment: number): SegmentRow | undefined {
    const [row] = this.rows({ segment: segment - 1, part: PART_MAX }, 1)
    return row?.segment === segment ? row : undefined
  }

  /** The first row of a segment. @throws MissingSegment where it is not there */
  rowOf(segment: number): SegmentRow {
    const row = this.find(segment)
    if (row === undefined) throw missing(segment)
    return row
  }

  /** All rows of a segment. */
  rowsOf(segment: number): SegmentRow[] {
    const [rows] = this.#grouped({ segment: segment - 1, part: PART_MAX })
    if (rows?.[0]?.segment !== segment) throw missing(segment)
    return rows
  }

  /**
   * The rows of one segment after the other behind one, to the end of the log as it is when it is read last. Where another
   * node goes on writing, there would be no end otherwise.
   */
  *segments(after: number): Generator<SegmentRow[]> {
    yield* this.#grouped({ segment: after, part: PART_MAX })
  }

  /** The rows of a segment may lie further on; all of it is there at once. */
  *#grouped(after: RowPlace): Generator<SegmentRow[]> {
    let own: SegmentRow[] = []
    for (let [last, isFull] = [after, true]; isFull;) {
      const found = this.rows(last)
      isFull = mayHaveMore(found)
      for (const row of found) {
        if (own.length > 0 && own[0]?.segment !== row.segment) {
          yield own
          own = []
        }
        own.push(row)
        last = row
      }
    }
    if (own.length > 0) yield own
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
