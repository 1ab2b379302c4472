import type { Clock } from '../../src/base/clock.js'
import { limits } from '../../src/base/limits/limits.js'
import type { Logger } from '../../src/base/log.js'
import type { Delivery, SinkConnection } from '../../src/outbound/postgres.js'
import { failureText, suspectCode } from '../../src/outbound/postgres-rows.js'
import type { SinkFigures } from '../../src/protocol/sink-messages.js'
import type { SinkLog, Taken } from './log.js'

/** What the sink works with. Time and chance come in. */
export interface SinkParts {
  logs: readonly SinkLog[]
  /** @throws Error when PostgreSQL is not there or refuses the connection */
  connect(breakOff: AbortSignal): Promise<SinkConnection>
  clock: Clock
  /** From 0 to 1. */
  chance(): number
  /** Resolves after so many milliseconds, or at once when the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  log: Logger
}

/**
 * Delivers committed records to PostgreSQL, batch after batch (docs/adr/0013-postgres-sink.md). A batch that fails is
 * tried again after a pause until PostgreSQL takes it; nothing else waits for it.
 */
export class SinkRun {
  readonly #parts: SinkParts
  readonly #stopping = new AbortController()
  readonly #breakingOff = new AbortController()
  #connection: SinkConnection | undefined
  #failuresInRow = 0
  /** How often the next batch of each shard has failed on a live connection, by the shard's number. */
  readonly #suspicions = new Map<number, number>()
  #rows = 0
  #deadLetters = 0
  #failures = 0

  constructor(parts: SinkParts) {
    this.#parts = parts
  }

  /** Delivers until `stop`. */
  async run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        const delivered = await this.#deliverAll()
        if (!delivered) await this.#parts.sleep(limits.sinkPollMs, signal)
        this.#failuresInRow = 0
      } catch (error) {
        if (signal.aborted) break
        await this.#failed(error)
      }
    }
    this.#connection?.close()
    this.#connection = undefined
  }

  /** Starts no further batch; the one under way finishes. */
  stop(): void {
    this.#stopping.abort()
  }

  /** Breaks off what is under way: PostgreSQL rolls it back, and the next start delivers it. */
  breakOff(): void {
    this.#breakingOff.abort()
  }

  /** Counts what was committed meanwhile. */
  look(): void {
    for (const log of this.#parts.logs) log.look()
  }

  figures(): SinkFigures {
    const { logs, clock } = this.#parts
    const nowMs = clock()
    return {
      connected: this.#connection?.open === true,
      lagRecords: logs.reduce((sum, log) => sum + log.lagRecords, 0),
      lagSecs: Math.max(0, ...logs.map((log) => log.ageMs(nowMs))) / 1000,
      rows: this.#rows,
      deadLetters: this.#deadLetters,
      failures: this.#failures,
    }
  }

  /** One batch of each shard, so that none waits for another's backlog. @returns whether there was any */
  async #deliverAll(): Promise<boolean> {
    const connection = await this.#connected()
    let any = false
    for (const log of this.#parts.logs) {
      if (this.#stopping.signal.aborted) break
      const taken = log.take()
      if (taken === undefined) continue
      any = true
      const { stored, refused } = await this.#deliver(connection, log.shard, taken)
      log.done(taken)
      this.#rows += stored
      this.#deadLetters += refused
      if (refused > 0) {
        this.#parts.log.warn({ shard: log.shard, refused }, 'PostgreSQL refused rows: they are dead letters')
      }
    }
    return any
  }

  /** One batch. If it fails again and again and the server is not to blame, a row of it is. */
  async #deliver(connection: SinkConnection, shard: number, taken: Taken): Promise<Delivery> {
    const failures = this.#suspicions.get(shard) ?? 0
    try {
      const suspect = failures >= limits.sinkBatchTriesMax
      const delivery = await connection.deliver({ shard, ...taken, suspect })
      this.#suspicions.delete(shard)
      return delivery
    } catch (error) {
      if (suspectCode(error) !== undefined) this.#suspicions.set(shard, failures + 1)
      throw error
    }
  }

  /**
   * The connection, or a new one if the last one broke. A new one reads the cursors again: PostgreSQL may have come
   * back without what it had confirmed, as after a failover.
   */
  async #connected(): Promise<SinkConnection> {
    if (this.#connection?.open === true) return this.#connection
    this.#connection?.close()
    this.#connection = undefined
    const connection = await this.#parts.connect(this.#breakingOff.signal)
    this.#connection = connection
    const cursors = await connection.cursors()
    for (const log of this.#parts.logs) {
      if (!log.goTo(cursors.get(log.shard))) {
        this.#parts.log.warn({ shard: log.shard }, "PostgreSQL's cursor is not in this log: delivering anew")
      }
    }
    this.#parts.log.info('connected to PostgreSQL')
    return connection
  }

  /**
   * Pauses twice as long after each failure. Half of the pause is random, so that servers do not all return at once.
   */
  async #failed(error: unknown): Promise<void> {
    this.#connection?.close()
    this.#connection = undefined
    this.#failures++
    const fullMs = Math.min(limits.sinkRetryBaseMs * 2 ** this.#failuresInRow++, limits.sinkRetryMaxMs)
    const pauseMs = Math.round((fullMs * (1 + this.#parts.chance())) / 2)
    this.#parts.log.warn(
      { reason: failureText(error), pause_ms: pauseMs },
      'delivering to PostgreSQL failed: trying again',
    )
    await this.#parts.sleep(pauseMs, this.#stopping.signal)
  }
}
