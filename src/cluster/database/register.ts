import { limits } from '../../base/limits/limits.js'
import { isNumber, isText, listOf, members } from '../../base/shape.js'
import { failureOf, describeDatabaseError, UnfitServer } from './database-errors.js'
import { LogConnection } from './log-connection.js'
import { hashOf } from './status.js'
import { isBuffer, type Parameter, Session, withinConnectTime } from './session.js'
import type { ClusterStatements } from './statements.js'
import { LATE } from '../../base/time-limit.js'

/** The position of a segment in the log of a shard: its number and its hash, 32 bytes. */
export interface SegmentPosition {
  number: number
  hash: Buffer
}

/** One row of a segment: record bodies in the clear, so that they can be erased, and sealed rows. */
export interface StoredPart {
  blocks: Buffer
  state: Buffer | null
}

/** A segment of a shard, as it is written. */
export interface StoredSegment extends SegmentPosition {
  shard: number
  header: string
  /** At least one. */
  parts: readonly StoredPart[]
  /** Bodies in earlier segments that are erased in the same transaction. */
  rewrites?: readonly Rewrite[]
}

/** New bodies for a row of an earlier segment. */
export interface Rewrite {
  segment: number
  part: number
  /** The hash of that segment. */
  hash: Buffer
  blocks: Buffer
}

/** One row of the log as it is read. */
export interface PartRow extends StoredPart {
  segment: number
  part: number
  hash: Buffer
  header: string
}

/**
 * The outcome of an append: `durable`, the segment is written and stays; `fenced`, a segment of another
 * writer has its number; `lost`, the durable segment before it is missing, or a row that it rewrites;
 * `unknown`, it may be written now or later, or not at all.
 */
export type AppendOutcome =
  | { kind: 'durable' }
  | { kind: 'fenced' }
  | { kind: 'lost' }
  | { kind: 'unknown'; reason: string }

const RETRY = 'again'

/** A row to be rewritten is missing, although rows of segments are never removed. */
class MissingRow extends Error {}

/** Dependencies of a register. */
interface RegisterParts {
  /** Addresses of the servers, one of which accepts writes. */
  urls: readonly string[]
  statements: ClusterStatements
  /** A monotonic clock, milliseconds. */
  nowMs(): number
  /** A random number from 0 to 1. */
  chance(): number
  /** Called with each new connection. */
  connected?(): void
  /** Called with each new connection before it is used. @throws UnfitServer if it must not be */
  examine?(session: Session): Promise<void>
}

/**
 * The log of shards in a database that speaks PostgreSQL's protocol. The primary key of one table lets
 * exactly one segment follow another. One call at a time.
 */
export class SegmentRegister {
  readonly #parts: RegisterParts
  #connection: LogConnection
  /** The connection of the second attempt of an append. */
  #second: LogConnection | undefined

  constructor(parts: RegisterParts) {
    this.#parts = parts
    this.#connection = this.#connect()
  }

  #connect(): LogConnection {
    const { urls, connected, examine } = this.#parts
    return new LogConnection(async () => {
      const session = await Session.open(urls)
      connected?.()
      await withinConnectTime(
        () => session.drop(),
        async () => examine?.(session),
      )
      return session
    })
  }

  /**
   * Appends a segment after another and determines the outcome. If the database does not answer for a while,
   * the append is sent on a second connection too: the first one may be dead, which nothing reports, or the
   * database waits for a slow standby. In that case the second attempt waits for the row of the first one, so
   * both remain, and the first outcome counts.
   */
  async append(before: SegmentPosition, segment: StoredSegment): Promise<AppendOutcome> {
    const untilMs = this.#parts.nowMs() + limits.clusterAppendMs
    const attempt = (connection: LogConnection): Attempt => ({
      connection,
      outcome: this.#attempt(connection, untilMs, [before, segment]),
    })
    const first = attempt(this.#connection)
    const early = await answerWithin(limits.clusterSecondTryMs, first.outcome)
    if (early !== undefined) return early
    this.#second = this.#connect()
    const second = attempt(this.#second)
    const { connection, outcome } = await firstDecided([first, second])
    const loser = connection === first.connection ? second : first
    loser.connection.abandon()
    this.#connection = connection
    this.#second = undefined
    return outcome
  }

  /**
   * Tries on one connection as often as necessary. Each try sends the same bytes, so a repeated append finds
   * the earlier one.
   */
  async #attempt(
    connection: LogConnection,
    untilMs: number,
    [before, segment]: [SegmentPosition, StoredSegment],
  ): Promise<AppendOutcome> {
    const { nowMs, chance } = this.#parts
    let reason: string = LATE
    for (let leftMs = untilMs - nowMs(); leftMs > 0 && !connection.isAbandoned; leftMs = untilMs - nowMs()) {
      try {
        const found = await connection.use(leftMs, (session) => this.#tryAppend(session, before, segment))
        if (found !== RETRY) return found
      } catch (error) {
        reason = describeDatabaseError(error)
        const failure = failureOf(error)
        if (failure === 'unknown') connection.drop()
        // An earlier attempt may have succeeded nevertheless.
        if (failure === 'refused' || error instanceof UnfitServer) return { kind: 'unknown', reason }
      }
      const { clusterRetryMinMs: least, clusterRetryMaxMs: most } = limits
      await new Promise((resolve) => setTimeout(resolve, least + chance() * (most - least)))
    }
    // A statement that is still running has lost its connection; its outcome is unknown.
    connection.drop()
    return { kind: 'unknown', reason }
  }

  /** Begins the log of a shard with segment 0. @throws Error if the log has one, or the outcome is unknown */
  async begin({ shard, number, hash, header, parts }: StoredSegment): Promise<void> {
    const [first] = parts
    const row: Parameter[] = [
      shard,
      number,
      hash,
      header,
      first?.blocks ?? Buffer.alloc(0),
      first?.state ?? null,
    ]
    const { warned } = await this.use((session) => session.write(this.#parts.statements.begin, row))
    if (warned) throw new Error('The database stopped waiting for its standby')
  }

  /**
   * Reads the rows of a shard's log after a position, in order.
   * @param after segment and part of the last row already read
   * @param limit rows at most; the read also ends with the segment that reaches `bytes`
   * @throws Error if the database cannot be reached, or a row is malformed
   */
  async read(
    shard: number,
    after: { segment: number; part: number },
    { rows, bytes = limits.clusterReadBytes }: { rows: number; bytes?: number },
  ): Promise<PartRow[]> {
    const { statements } = this.#parts
    const found: unknown = await this.use((session) =>
      session.rows(statements.read, [shard, after.segment, after.part, rows, bytes]),
    )
    if (!arePartRows(found)) throw new Error('Malformed segment row')
    return found.map(({ segment, ...more }) => ({ ...more, segment: Number(segment) }))
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  /** Closes its connections immediately; the outcome of a running call is unknown. */
  drop(): void {
    this.#connection.drop()
    this.#second?.drop()
  }

  async #tryAppend(
    session: Session,
    before: SegmentPosition,
    segment: StoredSegment,
  ): Promise<AppendOutcome | typeof RETRY> {
    try {
      const { rows, warned } = await this.#insert(session, before, segment)
      // A loss ends the process, so it needs a second look.
      if (rows === 0) return (await this.#has(session, segment.shard, before)) ? RETRY : { kind: 'lost' }
      return warned ? await this.#confirm(session, segment) : { kind: 'durable' }
    } catch (error) {
      if (error instanceof MissingRow) return { kind: 'lost' }
      if (failureOf(error) !== 'taken') throw error
      return this.#resolveConflict(session, segment)
    }
  }

  async #has(session: Session, shard: number, { number, hash }: SegmentPosition): Promise<boolean> {
    const there = await hashOf(session, this.#parts.statements, { shard, segment: number })
    return there?.equals(hash) === true
  }

  #insert(session: Session, before: SegmentPosition, segment: StoredSegment) {
    const { shard, number, hash, header, parts, rewrites = [] } = segment
    const { append, appendPart, rewrite } = this.#parts.statements
    const [first, ...others] = parts
    if (first === undefined) throw new Error('A segment needs at least one part')
    const chained: Parameter[] = [shard, before.number, before.hash, hash, header, first.blocks, first.state]
    if (others.length === 0 && rewrites.length === 0) return session.write(append, chained)
    return session.transaction(async () => {
      const written = await session.write(append, chained)
      if (written.rows === 0) return written
      for (const [index, { blocks, state }] of others.entries())
        await session.write(appendPart, [shard, number, index + 1, hash, blocks, state])
      for (const one of rewrites) {
        const { rows } = await session.write(rewrite, [shard, one.segment, one.part, one.hash, one.blocks])
        if (rows !== 1)
          throw new MissingRow(`Part ${one.part} of segment ${one.segment} is not in the cluster’s log`)
      }
      return written
    })
  }

  /** Another row has the number of a segment: finds out whether that row is the segment itself. */
  async #resolveConflict(session: Session, segment: StoredSegment): Promise<AppendOutcome | typeof RETRY> {
    const { shard, number } = segment
    const there = await hashOf(session, this.#parts.statements, { shard, segment: number })
    if (there === undefined) return RETRY
    return there.equals(segment.hash) ? this.#confirm(session, segment) : { kind: 'fenced' }
  }

  /**
   * Reading a row does not prove that it stays: a server that has stopped waiting for its standby shows the
   * row too. A later write that succeeds without a warning is the proof, because it follows the row in the
   * write-ahead log.
   */
  async #confirm(session: Session, { shard, number, hash }: SegmentPosition & { shard: number }) {
    const { rows, warned } = await session.write(this.#parts.statements.confirm, [shard, number, hash])
    return rows === 1 && !warned ? ({ kind: 'durable' } as const) : RETRY
  }

  /**
   * Runs other statements on the connection, within a time limit.
   * @throws Error if the database cannot be reached, or does not answer in time
   */
  use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#connection.use(limits.clusterReadMs, work)
  }
}

/** An append on one connection. */
interface Attempt {
  connection: LogConnection
  outcome: Promise<AppendOutcome>
}

/** @returns undefined if there is no answer yet */
async function answerWithin<T>(ms: number, answer: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), ms)))
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

/** The first attempt whose outcome is known, or the last one if none is. */
async function firstDecided(
  attempts: readonly [Attempt, Attempt],
): Promise<{ connection: LogConnection; outcome: AppendOutcome }> {
  const endOf = async ({ connection, outcome }: Attempt) => ({ connection, outcome: await outcome })
  const earlier = await Promise.race(attempts.map(endOf))
  if (earlier.outcome.kind !== 'unknown') return earlier
  const [first, second] = attempts
  return endOf(earlier.connection === first.connection ? second : first)
}

/** 64-bit numbers arrive as text. */
const arePartRows = listOf(
  members<Omit<PartRow, 'segment'> & { segment: string }>({
    segment: isText,
    part: isNumber,
    hash: isBuffer,
    header: isText,
    blocks: isBuffer,
    state: (value): value is Buffer | null => value === null || Buffer.isBuffer(value),
  }),
)
