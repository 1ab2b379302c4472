import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits/limits.js'
import { logFolder } from '../../../src/store-files/log-folder.js'
import { commitDurably, type Environment } from '../environment.js'
import { openEnvironment } from '../open-environment.js'
import { Preallocation, replayBytesMax } from '../preallocation.js'
import { markForScrubbing } from '../scrubber.js'
import { indexStore } from '../tables/store-indexes.js'
import { FileLog, type LogPosition } from './file-log.js'
import type { SegmentLog } from './segment-log.js'
import { Memtable } from './memtable.js'
import { decodeErasedBlock, erasedPositions } from './erased-positions.js'
import { isOfCluster, positionAt, putPosition, readPosition } from './position.js'
import type { RowOf } from './record-check.js'
import { encodeChanges } from './row-change.js'
import { tableIds } from '../../../src/store-files/store-tables.js'

/** Opens a log. @param from the store's position in it, if any; @param rowOf reads rows of the store */
export type OpenLog = (from: LogPosition | undefined, rowOf: RowOf) => SegmentLog<LogPosition>

/**
 * A store with its log. Appended changes are durable after a sync, and reach LMDB with the next flush. Each
 * flush writes its log position in the same transaction, and LMDB is never ahead of the log
 * (docs/adr/0041-one-log.md).
 */
export class ShardLog {
  readonly environment: Environment
  /** Free space at the end of LMDB's file. */
  readonly preallocation: Preallocation
  readonly #memtable = new Memtable()
  readonly #log: SegmentLog<LogPosition>
  /** Segments that were not in the store when it was opened. */
  readonly replayed: number
  readonly #rowOf: RowOf = (table, key) => this.#memtable.row(table, key)
  /** Whether the rows that are not flushed include an erasure. */
  #erases = false
  #flushedSegment = 0

  /**
   * Opens a store and its log, and applies the log to the store.
   * @param openLog opens the log; files beside the store if absent
   * @throws Error if the log is damaged or the disk is full
   */
  constructor(path: string, openLog: OpenLog = (from) => FileLog.open(join(path, logFolder), from)) {
    this.environment = openEnvironment(path, 'write', this.#memtable)
    this.preallocation = new Preallocation(path, this.environment)
    try {
      const position = readPosition(this.environment)
      this.#log = openLog(position, this.#rowOf)
      this.#flushedSegment = position?.number ?? 0
      this.replayed = this.catchUp()
      // Also if the log has only a segment that names the next file.
      if (this.#log.end.number !== position?.number) this.flush(() => {})
    } catch (error) {
      void this.#closeStore()
      throw error
    }
  }

  /** Approximate bytes of the rows that are not in LMDB. */
  get bytes(): number {
    return this.#memtable.bytes
  }

  /** Whether these rows include an erasure. */
  get hasErasures(): boolean {
    return this.#erases
  }

  /** The number of the last segment that the store has. */
  get flushedSegment(): number {
    return this.#flushedSegment
  }

  /** Reserves space for a segment with so many bytes of content. @returns false if the disk is full */
  reserve(contentBytes: number): boolean {
    return this.#log.reserve(contentBytes)
  }

  /** The number of the last appended segment. */
  get written(): number {
    return this.#log.end.number
  }

  /** The number of the last segment that is known to be durable. */
  get durable(): number {
    return this.#log.durable
  }

  /** Blocks until all segments are durable. @throws Error if that is unknown: the shard must stop */
  syncNow(): void {
    this.#log.syncNow()
  }

  /** Starts a sync, as `SegmentLog.syncSoon` does. */
  syncSoon(then: (error: Error | null) => void): void {
    this.#log.syncSoon(then)
  }

  /**
   * Appends the changes since the last segment; they are durable after the next sync.
   * @throws Error if the outcome is unknown: the shard must stop
   */
  append(): void {
    const changes = this.#memtable.takeChanges()
    this.#erases ||= changes.some(({ table }) => table === tableIds.erasures)
    this.#log.append(encodeChanges(changes))
  }

  /**
   * Writes all rows up to the end of the log to LMDB, in one transaction.
   * @param rest writes derived tables in the same transaction
   * @throws Error if the flush failed: the rows are still in the log, and the shard must stop
   */
  flush(rest: () => void): void {
    // LMDB must never be ahead of the durable part of the log.
    this.#log.syncNow()
    const { end } = this.#log
    commitDurably(this.environment, () => {
      this.#memtable.move(() => {
        if (this.#erases) markForScrubbing(this.environment)
        rest()
        putPosition(this.environment, end)
      })
    })
    this.#memtable.clear()
    this.#erases = false
    this.#log.release(end)
    this.#flushedSegment = end.number
  }

  /**
   * Flushes any number of segments, more than a shard would collect, and then updates the indexes in steps.
   */
  flushAndIndex(): void {
    this.flush(() => {})
    indexStore(this.environment, (body) => commitDurably(this.environment, () => this.#memtable.move(body)))
  }

  /** Destroys the content of the log. Call it after a flush. */
  wipe(): void {
    assert(this.#memtable.bytes === 0, 'a log is wiped after a flush')
    this.#log.wipe()
  }

  /**
   * Reads the segments that the store does not have.
   * @returns their number; they are in LMDB after the next flush
   */
  catchUp(): number {
    let segments = 0
    let changes = 0
    for (const segment of this.#log.read()) {
      segments += 1
      for (const logged of segment.changes) {
        const change = logged.table === erasedPositions ? decodeErasedBlock(logged, this.#rowOf) : logged
        changes += 1
        this.#erases ||= change.table === tableIds.erasures
        this.#memtable.replay(change)
      }
      if (this.#memtable.bytes < limits.replayBytes) continue
      this.#reserveReplay(changes)
      this.flush(() => {})
      changes = 0
    }
    if (changes > 0) this.#reserveReplay(changes)
    return segments
  }

  /** Closes the shard's log for this node, as `SegmentLog.transfer` does. */
  transfer(): void {
    this.#log.transfer()
  }

  async close(): Promise<void> {
    await this.#log.close()
    await this.#closeStore()
  }

  async #closeStore(): Promise<void> {
    this.preallocation.close()
    await this.environment.root.close()
  }

  #reserveReplay(changes: number): void {
    const bytesMax = replayBytesMax(this.environment, { changes, bytes: this.#memtable.bytes })
    if (!this.preallocation.reserve(bytesMax))
      throw new Error('The disk is too full to apply the log to the store')
  }
}

/**
 * Applies the log to a store that is not open, as a start of the server does after it was killed. For readers
 * without a shard.
 * @param openLog opens the log; files beside the store if absent
 * @throws Error if the log is damaged or the disk is full
 */
export async function recover(path: string, openLog?: OpenLog): Promise<void> {
  const log = new ShardLog(path, openLog)
  try {
    if (openLog !== undefined && log.replayed > 0) log.flushAndIndex()
  } finally {
    await log.close()
  }
}

/**
 * Reads the log of a store that is not open, and changes nothing.
 * @returns the number of segments that the next start will apply; undefined if the log is in a cluster
 * @throws Error if the log is damaged
 */
export async function segmentsAhead(path: string): Promise<number | undefined> {
  const position = await positionAt(path)
  // Nothing was ever appended: the store is from an earlier version, or its first start was interrupted.
  if (position === undefined) return 0
  if (isOfCluster(position)) return undefined
  const directory = join(path, logFolder)
  if (!existsSync(directory)) throw new Error(`The folder ${directory} is missing`)
  const log = FileLog.open(directory, position, 'read')
  try {
    return [...log.read()].length
  } finally {
    await log.close()
  }
}
