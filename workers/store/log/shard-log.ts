import { join } from 'node:path'
import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits/limits.js'
import { logFolder } from '../../../src/store-files/log-folder.js'
import { commitDurably, type Environment } from '../environment.js'
import { replayBytesMax, type Preallocation } from '../preallocation.js'
import { markForScrubbing } from '../scrubber.js'
import { FileLog, type LogPosition } from './file-log.js'
import type { SegmentLog } from './segment-log.js'
import type { Memtable } from './memtable.js'
import { erasedBlock, erasedInPlace } from './erased-in-place.js'
import { putPosition, readPosition } from './position.js'
import type { RowOf } from './record-check.js'
import { decodeChanges, encodeChanges } from './row-change.js'
import { tableIds } from './table-ids.js'

/** Opens a log where the store has it up to a place, or has nothing; `rowOf` are its rows. */
export type OpenLog = (from: LogPosition | undefined, rowOf: RowOf) => SegmentLog<LogPosition>

/** What the log of a shard works on. */
interface Parts {
  /** Directory of the store. */
  path: string
  environment: Environment
  memtable: Memtable
  room: Preallocation
  /** Where it lies; in files beside the store when absent. */
  openLog?: OpenLog | undefined
}

/**
 * The log of a shard beside its store: what is appended is durable, and LMDB gets it with the next flush. LMDB says
 * itself how far it is, in the transaction that brings it there, and is never ahead of the log
 * (docs/adr/0041-one-log.md).
 */
export class ShardLog {
  readonly #environment: Environment
  readonly #memtable: Memtable
  readonly #log: SegmentLog<LogPosition>
  /** Segments that the opening found and the store did not have. */
  readonly replayed: number
  readonly #rowOf: RowOf = (table, key) => this.#memtable.row(table, key)
  /** Rows that wait for a flush include those of an erasure. */
  #erases = false
  #flushedSegment = 0

  /** Opens the log and brings the store up to its end. @throws Error when the log is damaged, or the disk is full */
  constructor({ path, environment, memtable, room, openLog }: Parts) {
    this.#environment = environment
    this.#memtable = memtable
    const position = readPosition(environment)
    const open = openLog ?? ((from) => FileLog.open(join(path, logFolder), from))
    this.#log = open(position, this.#rowOf)
    this.#flushedSegment = position?.number ?? 0
    this.replayed = this.#replay(room)
    // Also where nothing but the name of the next file was in the log.
    if (this.#log.end.number !== position?.number) this.flush(() => {})
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
    commitDurably(this.#environment, () => {
      this.#memtable.move(() => {
        if (this.#erases) markForScrubbing(this.#environment)
        rest()
        putPosition(this.#environment, end)
      })
    })
    this.#memtable.forget()
    this.#erases = false
    this.#log.release(end)
    this.#flushedSegment = end.number
  }

  /** Overwrites all that the log ever held. Nothing may wait for a flush. */
  wipe(): void {
    assert(this.#memtable.bytes === 0, 'a log is wiped after a flush')
    this.#log.wipe()
  }

  /** Reads on in a log that another one writes. @returns how many segments it read; they wait for a flush */
  readOn(room: Preallocation): number {
    return this.#replay(room)
  }

  /** Gives the shard up, once everything is durable. @throws Error when that is not known */
  handOver(): void {
    this.#log.handOver()
  }

  async close(): Promise<void> {
    await this.#log.close()
  }

  #replay(room: Preallocation): number {
    let segments = 0
    let changes = 0
    for (const { kind, content } of this.#log.read()) {
      if (kind !== 'group') continue
      segments += 1
      for (const told of decodeChanges(content)) {
        const change = told.table === erasedInPlace ? erasedBlock(told, this.#rowOf) : told
        changes += 1
        this.#erases ||= change.table === tableIds.erasures
        this.#memtable.replay(change)
      }
      if (this.#memtable.bytes < limits.replayBytes) continue
      this.#makeRoom(room, changes)
      this.flush(() => {})
      changes = 0
    }
    if (changes > 0) this.#makeRoom(room, changes)
    return segments
  }

  #makeRoom(room: Preallocation, changes: number): void {
    const bytesMax = replayBytesMax(this.#environment, { changes, bytes: this.#memtable.bytes })
    if (!room.reserve(bytesMax)) throw new Error('The disk has no room to bring the store up to its log')
  }
}
