import { backoffMs } from '../../src/base/backoff.js'
import type { Clock } from '../../src/base/clock.js'
import { limits } from '../../src/base/limits/limits.js'
import type { Logger } from '../../src/base/log.js'
import type { Delivery, SinkConnection } from '../../src/outbound/postgres.js'
import { failureText, needsFewerRows } from '../../src/outbound/postgres-rows.js'
import type { SinkFigures } from '../../src/protocol/sink-messages.js'
import type { SinkLog, LogBatch } from './log.js'

/** The dependencies of the sink, with its clock and its source of randomness. */
export interface SinkParts {
  logs: readonly SinkLog[]
  /** @throws Error if PostgreSQL is unreachable or refuses the connection */
  connect(signal: AbortSignal): Promise<SinkConnection>
  clock: Clock
  /** A random number from 0 to 1. */
  chance(): number
  /** Resolves after `ms` milliseconds, or as soon as the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  log: Logger
}

/**
 * Delivers committed records to PostgreSQL in batches (docs/adr/0013-postgres-sink.md). A failed batch is
 * retried after a pause until PostgreSQL accepts it; no other part of the server waits for it.
 */
export class SinkRun {
  readonly #parts: SinkParts
  readonly #stopping = new AbortController()
  readonly #aborting = new AbortController()
  #connection: SinkConnection | undefined
  #failuresInRow = 0
  /**
   * How often the next batch of each shard has failed in a way that fewer rows in each statement may help
   * against, by the number of the shard.
   */
  readonly #batchFailures = new Map<number, number>()
  /** The index of the log that is delivered first: the one after the log whose delivery failed last. */
  #first = 0
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

  /** Stops after the current batch. */
  stop(): void {
    this.#stopping.abort()
  }

  /** Aborts the current batch: PostgreSQL rolls it back, and it is delivered after the next start. */
  abort(): void {
    this.#aborting.abort()
  }

  /** Counts the records that were committed since the last call. */
  countNew(): void {
    for (const log of this.#parts.logs) log.countNew()
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

  /**
   * Delivers one batch of each shard, so that no shard waits for another's backlog or failing batch.
   * @returns whether there was any batch
   */
  async #deliverAll(): Promise<boolean> {
    const connection = await this.#connected()
    let any = false
    const { logs } = this.#parts
    for (const log of [...logs.slice(this.#first), ...logs.slice(0, this.#first)]) {
      if (this.#stopping.signal.aborted) break
      this.#first = (logs.indexOf(log) + 1) % logs.length
      if (log.needsCursor) await this.#place(connection, log)
      const batch = log.nextBatch()
      if (batch === undefined) continue
      any = true
      const { stored, refused } = await this.#deliver(connection, log.shard, batch)
      log.confirm(batch)
      this.#failuresInRow = 0
      this.#rows += stored
      this.#deadLetters += refused
      if (refused > 0) {
        this.#parts.log.warn({ shard: log.shard, refused }, 'PostgreSQL refused rows: stored as dead letters')
      }
    }
    return any
  }

  /** Delivers a batch, with fewer rows in each statement if it keeps failing. */
  async #deliver(connection: SinkConnection, shard: number, batch: LogBatch): Promise<Delivery> {
    const failures = this.#batchFailures.get(shard) ?? 0
    try {
      const delivery = await connection.deliver({ shard, ...batch, failures })
      this.#batchFailures.delete(shard)
      return delivery
    } catch (error) {
      if (needsFewerRows(error)) this.#batchFailures.set(shard, failures + 1)
      throw error
    }
  }

  /**
   * Returns the connection, or a new one if it broke. With a new connection, each log reads its cursor again,
   * because PostgreSQL may have lost confirmed rows, as after a failover.
   */
  async #connected(): Promise<SinkConnection> {
    if (this.#connection?.open === true) return this.#connection
    this.#connection?.close()
    this.#connection = undefined
    const connection = await this.#parts.connect(this.#aborting.signal)
    this.#connection = connection
    for (const log of this.#parts.logs) log.forgetCursor()
    this.#parts.log.info('connected to PostgreSQL')
    return connection
  }

  /** Moves a log to its cursor. Logs that other nodes deliver are paused, and placed when they resume. */
  async #place(connection: SinkConnection, log: SinkLog): Promise<void> {
    const cursors = await connection.cursors()
    if (log.seek(cursors.get(log.shard))) return
    this.#parts.log.warn(
      { shard: log.shard },
      "PostgreSQL's cursor is not in this log: delivering from the start",
    )
  }

  async #failed(error: unknown): Promise<void> {
    this.#connection?.close()
    this.#connection = undefined
    this.#failures++
    const backoff = { firstMs: limits.sinkRetryBaseMs, maxMs: limits.sinkRetryMaxMs }
    const pauseMs = backoffMs(backoff, ++this.#failuresInRow, this.#parts.chance)
    this.#parts.log.warn(
      { reason: failureText(error), pause_ms: pauseMs },
      'delivering to PostgreSQL failed: trying again',
    )
    await this.#parts.sleep(pauseMs, this.#stopping.signal)
  }
}
