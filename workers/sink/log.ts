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

/** Rows and erasures of one shard, and the cursor once they are delivered. */
export interface Taken {
  rows: SinkRow[]
  /** Hashes of records whose bodies were erased, in this batch or before. */
  erased: string[]
  cursor: SinkCursor
}

/** One shard's log as the sink walks it, block by block: how far it was delivered, and how much is left. */
export class SinkLog {
  readonly shard: number
  readonly #open: () => Environment
  #opened: Environment | undefined
  #paused = false
  readonly #names = boundedCache<number, string>(limits.openAgentsMax)
  /** The block that is delivered next. */
  #next = 0
  /** The block that is counted next, and the ingest records between the two blocks. */
  #counted = 0
  #lag = 0
  /** The block after the cursor that PostgreSQL has. */
  #kept = 0

  /** @param open opens the shard's store for reading */
  constructor(shard: number, open: () => Environment) {
    this.shard = shard
    this.#open = open
  }

  /** Ingest records that are counted and not delivered. */
  get lagRecords(): number {
    return this.#lag
  }

  /**
   * Goes to the cursor up to which PostgreSQL has everything.
   * @returns false when this log has no such place, as after a restore: it starts at the beginning, and rows that exist
   * stay as they are
   */
  goTo(cursor: SinkCursor | undefined): boolean {
    const environment = this.#current()
    const known =
      cursor === undefined ||
      (cursor.blockNo <= lastBlockNo(environment) &&
        lastHashOf(environment, cursor.blockNo) === cursor.contentHash)
    const next = known && cursor !== undefined ? cursor.blockNo + 1 : 0
    this.#kept = next
    if (next !== this.#next) {
      this.#next = next
      this.#counted = next
      this.#lag = 0
    }
    return known
  }

  /** Counts what was committed since the last call, up to a bound. @returns whether there is more to count */
  look(): boolean {
    if (this.#paused) return false
    const environment = this.#current()
    const last = lastBlockNo(environment)
    const end = Math.min(last + 1, this.#counted + limits.sinkScanBlocks)
    for (; this.#counted < end; this.#counted++) this.#lag += ingestedCount(environment, this.#counted)
    return this.#counted <= last
  }

  /** Milliseconds since the oldest block that is not delivered was written; 0 when none holds an ingest record. */
  ageMs(nowMs: number): number {
    return this.#lag === 0 || this.#paused ? 0 : Math.max(0, nowMs - blockMs(this.#current(), this.#next))
  }

  /**
   * The next rows in commit order, as whole blocks.
   * @returns undefined when there is nothing to deliver
   * @throws Error when a stored record does not match its checksum
   */
  take(): Taken | undefined {
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
    if (rows.length + erased.length === 0 && block - this.#kept < limits.sinkScanBlocks) {
      this.#pass(block, 0)
      return undefined
    }
    return { rows, erased, cursor: { blockNo: block - 1, contentHash: lastHashOf(environment, block - 1) } }
  }

  /** PostgreSQL has confirmed the last batch. */
  done({ rows, cursor }: Taken): void {
    this.#kept = cursor.blockNo + 1
    this.#pass(this.#kept, rows.length)
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
   * Closes the store until `resume`. LMDB has one environment of a store in a process: a failed commit can leave it
   * unusable until everybody has closed it, and one that was opened for reading first takes no writes.
   */
  async pause(): Promise<void> {
    const opened = this.#opened
    this.#paused = true
    this.#opened = undefined
    await opened?.root.close()
  }

  /** The store's shard serves again. */
  resume(): void {
    this.#paused = false
  }

  /** The log as it is now; an old snapshot would keep pages from being reused. */
  #current(): Environment {
    if (this.#paused) throw new Error(`Shard ${this.shard} does not serve`)
    this.#opened ??= this.#open()
    this.#opened.root.resetReadTxn()
    return this.#opened
  }
}
