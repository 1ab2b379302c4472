import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits/limits.js'
import { logFolder } from '../../../src/store-files/log-folder.js'
import { commitDurably, openEnvironment, type Environment } from '../environment.js'
import { Preallocation, replayBytesMax } from '../preallocation.js'
import { markForScrubbing } from '../scrubber.js'
import { indexStore } from '../tables/store-indexes.js'
import { FileLog, type LogPosition } from './file-log.js'
import type { SegmentLog } from './segment-log.js'
import { Memtable } from './memtable.js'
import { erasedBlock, erasedInPlace } from './erased-in-place.js'
import { isOfCluster, positionAt, putPosition, readPosition } from './position.js'
import type { RowOf } from './record-check.js'
import { encodeChanges } from './row-change.js'
import { tableIds } from './table-ids.js'

/** Opens a log where the store has it up to a place, or has nothing; `rowOf` are its rows. */
export type OpenLog = (from: LogPosition | undefined, rowOf: RowOf) => SegmentLog<LogPosition>

/**
 * A store with its log: what is appended to the log is durable, and LMDB gets it with the next flush. LMDB says itself how far it
 * is, in the transaction that brings it there, and is never ahead of the log (docs/adr/0041-one-log.md).
 */
export class ShardLog {
  readonly environment: Environment
  /** Free space at the end of LMDB's file. */
  readonly room: Preallocation
  readonly #memtable = new Memtable()
  readonly #log: SegmentLog<LogPosition>
  /** Segments that the opening found and the store did not have. */
  readonly replayed: number
  readonly #rowOf: RowOf = (table, key) => this.#memtable.row(table, key)
  /** Rows that wait for a flush include those of an erasure. */
  #erases = false
  #flushedSegment = 0

  /**
   * Opens a store and its log, and brings the store up to its end.
   * @param openLog where the log lies; in files beside the store when absent
   * @throws Error when the log is damaged, or the disk is full
   */
  constructor(path: string, openLog: OpenLog = (from) => FileLog.open(join(path, logFolder), from)) {
    this.environment = openEnvironment(path, 'write', this.#memtable)
    this.room = new Preallocation(path, this.environment)
    try {
      const position = readPosition(this.environment)
      this.#log = openLog(position, this.#rowOf)
      this.#flushedSegment = position?.number ?? 0
      this.replayed = this.readOn()
      // Also where nothing but the name of the next file was in the log.
      if (this.#log.end.number !== position?.number) this.flush(() => {})
    } catch (error) {
      void this.#closeStore()
      throw error
    }
  }

  /** Bytes that rows take which LMDB does not have, roughly. */
  get bytes(): number {
    return this.#memtable.bytes
  }

  /** Whether that includes what is to be erased. */
  get erases(): boolean {
    return this.#erases
  }

  /** The number of the last segment that the store has. */
  get flushedSegment(): number {
    return this.#flushedSegment
  }

  /** Makes room for a segment with so much content. @returns false when the disk has none */
  reserve(contentBytes: number): boolean {
    return this.#log.reserve(contentBytes)
  }

  /** The number of the last segment. */
  get written(): number {
    return this.#log.end.number
  }

  /** The number of the last segment that is on disk for sure. */
  get durable(): number {
    return this.#log.durable
  }

  /** Waits until everything is on disk. @throws Error when that is not known: the shard must stop */
  syncNow(): void {
    this.#log.syncNow()
  }

  /** Has what is written by now brought to disk; `then` is called as `SegmentLog.syncSoon` does. */
  syncSoon(then: (error: Error | null) => void): void {
    this.#log.syncSoon(then)
  }

  /**
   * Appends what the tables were given since the last segment; it is on disk after the next sync.
   * @throws Error when that is not known: the shard must stop
   */
  append(): void {
    const changes = this.#memtable.takeChanges()
    this.#erases ||= changes.some(({ table }) => table === tableIds.erasures)
    this.#log.append(encodeChanges(changes))
  }

  /**
   * Brings LMDB up to the end of the log, in one transaction.
   * @param rest writes what follows from the rows
   * @throws Error when it failed: the log still has all of it, and the shard must stop
   */
  flush(rest: () => void): void {
    // LMDB is never ahead of what the log has for sure.
    this.#log.syncNow()
    const { end } = this.#log
    commitDurably(this.environment, () => {
      this.#memtable.move(() => {
        if (this.#erases) markForScrubbing(this.environment)
        rest()
        putPosition(this.environment, end)
      })
    })
    this.#memtable.forget()
    this.#erases = false
    this.#log.release(end)
    this.#flushedSegment = end.number
  }

  /** The same where any number of segments may have come, which a shard would bound: the indexes follow in steps. */
  settle(): void {
    this.flush(() => {})
    indexStore(this.environment, (body) => commitDurably(this.environment, () => this.#memtable.move(body)))
  }

  /** Overwrites all that the log ever held. Nothing may wait for a flush. */
  wipe(): void {
    assert(this.#memtable.bytes === 0, 'a log is wiped after a flush')
    this.#log.wipe()
  }

  /** Reads the log from where the store has it, or on where another one writes it. @returns how many segments; they wait for a flush */
  readOn(): number {
    let segments = 0
    let changes = 0
    for (const segment of this.#log.read()) {
      segments += 1
      for (const read of segment.changes) {
        const change = read.table === erasedInPlace ? erasedBlock(read, this.#rowOf) : read
        changes += 1
        this.#erases ||= change.table === tableIds.erasures
        this.#memtable.replay(change)
      }
      if (this.#memtable.bytes < limits.replayBytes) continue
      this.#makeRoom(changes)
      this.flush(() => {})
      changes = 0
    }
    if (changes > 0) this.#makeRoom(changes)
    return segments
  }

  /** Gives the shard up, once everything is durable. @throws Error when that is not known */
  handOver(): void {
    this.#log.handOver()
  }

  /** Closes the log and the store. */
  async close(): Promise<void> {
    await this.#log.close()
    await this.#closeStore()
  }

  async #closeStore(): Promise<void> {
    this.room.close()
    await this.environment.root.close()
  }

  #makeRoom(changes: number): void {
    const bytesMax = replayBytesMax(this.environment, { changes, bytes: this.#memtable.bytes })
    if (!this.room.reserve(bytesMax)) throw new Error('The disk has no room to bring the store up to its log')
  }
}

/**
 * Brings a store up to its log, as a start of the server does, where one was killed. For whoever reads the store
 * without a shard; nobody may have it open.
 * @param openLog where its log lies; in files beside it when absent
 * @throws Error when the log is damaged, or the disk is full
 */
export async function recover(path: string, openLog?: OpenLog): Promise<void> {
  const log = new ShardLog(path, openLog)
  try {
    if (openLog !== undefined && log.replayed > 0) log.settle()
  } finally {
    await log.close()
  }
}

/**
 * Walks through the log of a store that nobody has open, and changes nothing.
 * @returns how many segments the next start will bring into the store; undefined for one whose log is that of a cluster
 * @throws Error when the log is damaged
 */
export async function segmentsAhead(path: string): Promise<number | undefined> {
  const position = await positionAt(path)
  // A store of an earlier version, or one whose first start was cut off: nothing was ever appended.
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
