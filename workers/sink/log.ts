import { boundedCache } from '../../src/base/bounded-cache.js'
import { limits } from '../../src/base/limits/limits.js'
import type { SinkCursor } from '../../src/outbound/postgres.js'
import type { SinkRow } from '../../src/outbound/postgres-rows.js'
import { formatHlc } from '../../src/strand/hlc.js'
import type { Environment } from '../store/environment.js'
import {
  agentNameOf,
  blockMs,
  ingestedCount,
  lastBlockNo,
  lastHashOf,
  readSinkBlock,
} from '../store/tables/ingest-log.js'
import type { StoredRecord } from '../store/tables/record-codec.js'

/** A batch of rows and erasures of one shard, and its cursor after the delivery. */
export interface LogBatch {
  rows: SinkRow[]
  /** Hashes of records whose bodies were erased; the records may be in this batch or in an earlier one. */
  erased: string[]
  cursor: SinkCursor
}

/**
 * The sink's position in the log of one shard, block by block: how far it has delivered, and how much is
 * left.
 */
export class SinkLog {
  readonly shard: number
  readonly #open: () => Environment
  #environment: Environment | undefined
  #paused = false
  /** Whether the cursor has to be read before the next delivery: another node may have moved it. */
  #isUnplaced = true
  readonly #names = boundedCache<number, string>(limits.openAgentsMax)
  /** The block that is delivered next. */
  #next = 0
  /** The block that is counted next. */
  #counted = 0
  /** The number of ingest records between the two blocks. */
  #lag = 0
  /** The block after the cursor that PostgreSQL has. */
  #confirmed = 0

  /** @param open opens the shard's store for reading */
  constructor(shard: number, open: () => Environment) {
    this.shard = shard
    this.#open = open
  }

  /** Ingest records that are counted but not delivered; 0 while another node delivers them. */
  get lagRecords(): number {
    return this.#paused ? 0 : this.#lag
  }

  /** Whether `seek` has to be called before `nextBatch`: after `resume` and `forgetCursor`. */
  get needsCursor(): boolean {
    return this.#isUnplaced && !this.#paused
  }

  /** PostgreSQL may have lost the cursor, as after a failover. */
  forgetCursor(): void {
    this.#isUnplaced = true
  }

  /**
   * Moves to the cursor up to which PostgreSQL has everything, unless paused in the meantime.
   * @returns false if this log does not contain the cursor, as after a restore: delivery starts at the
   * beginning, and existing rows stay unchanged
   */
  seek(cursor: SinkCursor | undefined): boolean {
    if (this.#paused) return true
    const environment = this.#current()
    this.#isUnplaced = false
    const known =
      cursor === undefined ||
      (cursor.blockNo <= lastBlockNo(environment) &&
        lastHashOf(environment, cursor.blockNo) === cursor.contentHash)
    const next = known && cursor !== undefined ? cursor.blockNo + 1 : 0
    this.#confirmed = next
    if (next !== this.#next) {
      this.#next = next
      this.#counted = next
      this.#lag = 0
    }
    return known
  }

  /**
   * Counts the records that were committed since the last call, up to a bound.
   * @returns whether there is more to count
   */
  countNew(): boolean {
    if (this.#paused) return false
    const environment = this.#current()
    const last = lastBlockNo(environment)
    const end = Math.min(last + 1, this.#counted + limits.sinkScanBlocks)
    for (; this.#counted < end; this.#counted++) this.#lag += ingestedCount(environment, this.#counted)
    return this.#counted <= last
  }

  /**
   * Milliseconds since the oldest undelivered block was written; 0 if no undelivered block has an ingest
   * record.
   */
  ageMs(nowMs: number): number {
    return this.#lag === 0 || this.#paused ? 0 : Math.max(0, nowMs - blockMs(this.#current(), this.#next))
  }

  /**
   * The next rows in commit order, in whole blocks.
   * @returns undefined if there is nothing to deliver
   * @throws Error if a stored record does not match its checksum
   */
  nextBatch(): LogBatch | undefined {
    if (this.#paused) return undefined
    const environment = this.#current()
    const end = Math.min(lastBlockNo(environment) + 1, this.#next + limits.sinkScanBlocks)
    const rows: SinkRow[] = []
    const erased: string[] = []
    let bytes = 0
    let block = this.#next
    for (; block < end && rows.length < limits.sinkBatchRows && bytes < limits.sinkBatchBytes; block++) {
      const found = readSinkBlock(environment, block)
      erased.push(...found.erased)
      for (const record of found.ingested) {
        rows.push(this.#rowOf(environment, record))
        bytes += record.body.length
      }
    }
    if (rows.length + erased.length === 0 && block - this.#confirmed < limits.sinkScanBlocks) {
      this.#pass(block, 0)
      return undefined
    }
    return { rows, erased, cursor: { blockNo: block - 1, contentHash: lastHashOf(environment, block - 1) } }
  }

  /** Records that PostgreSQL has confirmed the last batch. */
  confirm({ rows, cursor }: LogBatch): void {
    this.#confirmed = cursor.blockNo + 1
    this.#pass(this.#confirmed, rows.length)
  }

  #pass(next: number, rows: number): void {
    this.#next = next
    if (next < this.#counted) this.#lag -= rows
    else {
      this.#counted = next
      this.#lag = 0
    }
  }

  #rowOf(environment: Environment, record: StoredRecord): SinkRow {
    let agent = this.#names.get(record.agentNo)
    if (agent === undefined) {
      agent = agentNameOf(environment, record.agentNo)
      this.#names.set(record.agentNo, agent)
    }
    return {
      contentHash: record.hash,
      agent,
      seq: record.seq,
      timestampHlc: formatHlc(record.hlc),
      type: record.type,
      body: record.erased === true ? undefined : record.body,
    }
  }

  /**
   * Closes the store until `resume`. LMDB shares one environment per store in a process: after a failed
   * commit it can be unusable until every user has closed it, and an environment that was first opened for
   * reading takes no writes.
   */
  async pause(): Promise<void> {
    const environment = this.#environment
    this.#paused = true
    this.#isUnplaced = true
    this.#environment = undefined
    await environment?.root.close()
  }

  /** Opens the store again, once its shard serves. */
  resume(): void {
    this.#paused = false
  }

  /** The current state of the log; an old snapshot would prevent LMDB from reusing pages. */
  #current(): Environment {
    if (this.#paused) throw new Error(`The sink has paused reading shard ${this.shard}`)
    this.#environment ??= this.#open()
    this.#environment.root.resetReadTxn()
    return this.#environment
  }
}
