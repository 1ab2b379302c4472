import { limits } from '../../base/limits/limits.js'
import { isNumber, isText, listOf, members } from '../../base/shape.js'
import { failureOf, describeTrouble } from './trouble.js'
import { hashOf } from './standing.js'
import { isBuffer, type Parameter, Session } from './session.js'
import type { ClusterStatements } from './statements.js'

/** Where a segment of a shard stands: its number, and its hash, 32 bytes. */
export interface SegmentPosition {
  number: number
  hash: Buffer
}

/** What one row of a segment holds: bodies in the clear, so that they can be erased, and sealed rows. */
export interface StoredPart {
  blocks: Buffer
  state: Buffer | null
}

/** A segment of a shard, as it is written. */
export interface StoredSegment extends SegmentPosition {
  shard: number
  header: string
  /** One at least. */
  parts: readonly StoredPart[]
  /** Bodies of rows that were written before, which are erased with it: all of it is done, or nothing. */
  rewrites?: readonly Rewrite[]
}

/** The bodies of a row of another segment, as they are to be. */
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
 * What became of an append: `durable`, it is there and stays; `fenced`, another one's segment is in its place; `lost`, the
 * segment before is not there, which was durable, or a row that it rewrites; `unknown`, it may be there or not, and may
 * come to be there yet.
 */
export type AppendOutcome =
  | { kind: 'durable' }
  | { kind: 'fenced' }
  | { kind: 'lost' }
  | { kind: 'unknown'; reason: string }

const AGAIN = 'again'

const LATE = 'the database did not answer in time, as when it waits for its standby'

/** A row that is to be rewritten is not there: rows of segments are never removed. */
class MissingRow extends Error {}

/** What a register is made of. */
interface RegisterParts {
  /** Addresses of the servers, one of which takes writes. */
  urls: readonly string[]
  statements: ClusterStatements
  /** A clock that only goes on, milliseconds. */
  nowMs(): number
  /** 0 to 1. */
  chance(): number
  /** Called with each connection that is made. */
  connected?(): void
}

/**
 * The log of shards in a database that speaks PostgreSQL's protocol: one segment each upon the one before, by the primary
 * key of one table. One call at a time.
 */
export class SegmentRegister {
  readonly #parts: RegisterParts
  #session: Session | undefined

  constructor(parts: RegisterParts) {
    this.#parts = parts
  }

  /**
   * Writes a segment behind another, and finds out what became of it, however often it has to ask. The segment is the
   * same bytes each time, so what is sent twice meets itself.
   */
  async append(before: SegmentPosition, segment: StoredSegment): Promise<AppendOutcome> {
    const { nowMs, chance } = this.#parts
    const untilMs = nowMs() + limits.clusterAppendMs
    let reason: string = LATE
    for (let leftMs = limits.clusterAppendMs; leftMs > 0; leftMs = untilMs - nowMs()) {
      try {
        const found = await this.#within(leftMs, (session) => this.#tryAppend(session, before, segment))
        if (found !== AGAIN) return found
      } catch (error) {
        reason = describeTrouble(error)
        const failure = failureOf(error)
        if (failure === 'unknown') this.#drop()
        // What was sent before may have been done all the same.
        if (failure === 'refused') return { kind: 'unknown', reason }
      }
      const { clusterRetryMinMs: least, clusterRetryMaxMs: most } = limits
      await new Promise((resolve) => setTimeout(resolve, least + chance() * (most - least)))
    }
    // Whatever is under way there has lost its connection, and is done or not.
    this.#drop()
    return { kind: 'unknown', reason }
  }

  /** Begins the log of a shard with its segment 0. @throws Error where one is there, or nothing is known of it */
  async begin({ shard, number, hash, header, parts }: StoredSegment): Promise<void> {
    const session = await this.#open()
    const [first] = parts
    const row: Parameter[] = [
      shard,
      number,
      hash,
      header,
      first?.blocks ?? Buffer.alloc(0),
      first?.state ?? null,
    ]
    const { warned } = await session.write(this.#parts.statements.begin, row)
    if (warned) throw new Error('The database stopped waiting for its standby')
  }

  /**
   * The rows of a shard's log behind a place, in order.
   * @param most how many at most; with the row by which they have so many bytes it ends, too
   * @throws Error when the database cannot be reached, or answers in a way that is not ours
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
    if (!areParts(found)) throw new Error('Expected the rows of segments that a cluster has')
    return found.map(({ segment, ...more }) => ({ ...more, segment: Number(segment) }))
  }

  async close(): Promise<void> {
    await this.#session?.close()
    this.#session = undefined
  }

  /** Ends it at once: nothing is known of what is under way. */
  drop(): void {
    this.#drop()
  }

  async #tryAppend(
    session: Session,
    before: SegmentPosition,
    segment: StoredSegment,
  ): Promise<AppendOutcome | typeof AGAIN> {
    try {
      const { rows, warned } = await this.#insert(session, before, segment)
      if (rows === 0) return { kind: 'lost' }
      return warned ? await this.#confirm(session, segment) : { kind: 'durable' }
    } catch (error) {
      if (error instanceof MissingRow) return { kind: 'lost' }
      if (failureOf(error) !== 'taken') throw error
      return this.#whose(session, segment)
    }
  }

  #insert(session: Session, before: SegmentPosition, segment: StoredSegment) {
    const { shard, number, hash, header, parts, rewrites = [] } = segment
    const { append, appendPart, rewrite } = this.#parts.statements
    const [first, ...others] = parts
    if (first === undefined) throw new Error('Expected a segment to have a part')
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

  /** Something is in the place of a segment. */
  async #whose(session: Session, segment: StoredSegment): Promise<AppendOutcome | typeof AGAIN> {
    const { shard, number } = segment
    const there = await hashOf(session, this.#parts.statements, { shard, segment: number })
    if (there === undefined) return AGAIN
    return there.equals(segment.hash) ? this.#confirm(session, segment) : { kind: 'fenced' }
  }

  /**
   * Seeing a row does not prove that it stays: a server that stopped waiting for its standby shows it too. A later write
   * that is answered without a warning does, as it stands behind it in the log of the database.
   */
  async #confirm(session: Session, { shard, number, hash }: SegmentPosition & { shard: number }) {
    const { rows, warned } = await session.write(this.#parts.statements.confirm, [shard, number, hash])
    return rows === 1 && !warned ? ({ kind: 'durable' } as const) : AGAIN
  }

  /**
   * Does something else on the connection, which is broken off when that takes long: a network may lose packets without an end.
   * @throws Error when the database cannot be reached, or does not answer in time
   */
  use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#within(limits.clusterReadMs, work)
  }

  /** Does something on the connection, which is broken off when it takes longer. */
  async #within<T>(ms: number, work: (session: Session) => Promise<T>): Promise<T> {
    const session = await this.#open()
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      session.drop()
    }, ms)
    try {
      return await work(session)
    } catch (error) {
      throw isLate ? new Error(LATE, { cause: error }) : error
    } finally {
      clearTimeout(timer)
    }
  }

  /** The connection, which is made anew where it has broken. @throws Error when no server that takes writes is reached */
  async #open(): Promise<Session> {
    if (this.#session?.open !== true) {
      this.#session = await Session.open(this.#parts.urls)
      this.#parts.connected?.()
    }
    return this.#session
  }

  #drop(): void {
    this.#session?.drop()
    this.#session = undefined
  }
}

/** 64-bit numbers come as texts. */
const areParts = listOf(
  members<Omit<PartRow, 'segment'> & { segment: string }>({
    segment: isText,
    part: isNumber,
    hash: isBuffer,
    header: isText,
    blocks: isBuffer,
    state: (value): value is Buffer | null => value === null || Buffer.isBuffer(value),
  }),
)
