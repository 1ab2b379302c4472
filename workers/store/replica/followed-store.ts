import { assert } from '../../../src/base/assert.js'
import { steadyClock } from '../../../src/base/clock.js'
import { limits } from '../../../src/base/limits/limits.js'
import { machineClock } from '../../../src/base/machine-clock.js'
import type { SegmentName } from '../../../src/protocol/cluster-log-messages.js'
import { commitDurably, type Environment, openEnvironment } from '../environment.js'
import { Preallocation } from '../preallocation.js'
import { Scrubber } from '../scrubber.js'
import { indexStore } from '../tables/store-indexes.js'
import type { ClusterReader } from './cluster-reader.js'
import type { Writer } from './cluster-segment.js'
import { FollowedLog } from './followed-log.js'
import { Memtable } from '../log/memtable.js'
import { type Found, type NodeStore, bringUp, readerOf } from './node-store.js'
import { ShardLog } from '../log/shard-log.js'

/** How far a store is that follows its shard's log. */
export interface Followed {
  /** The last segment that it has read. */
  segment: number
  /** Who wrote that: the owner of the shard, where that node is alive and has not given it up. */
  writer: Writer
  isClosed: boolean
}

/**
 * The store of a shard that another node owns, kept open and up to the shard's log, so that this node has little to read
 * when it takes the shard over.
 */
export class FollowedStore {
  /** What became of the store that was there. */
  readonly found: Found
  readonly #environment: Environment
  readonly #memtable: Memtable
  readonly #room: Preallocation
  readonly #reader: ClusterReader
  readonly #log: ShardLog
  readonly #store: NodeStore
  /** What was read, and when, by the clock of the machine: durable where a later beat of this node is. */
  #seen: { at: SegmentName; atMs: number } | undefined
  /** When the beat was sent by which that was last looked at. */
  #beatMs = -Infinity
  /** Whether the last look found segments behind those before, so that the log had these. */
  #hasGrown = false
  /** Since when something waits in memory that LMDB does not have; undefined while it has all. */
  #waitingSinceMs: number | undefined

  private constructor(store: NodeStore, opened: Opened, found: Found) {
    this.#store = store
    this.found = found
    this.#environment = opened.environment
    this.#memtable = opened.memtable
    this.#room = opened.room
    this.#reader = opened.reader
    this.#log = opened.log
  }

  /**
   * Brings a store up to its shard's log, makes it where it is not there, and keeps it open.
   * @throws Error when the database cannot be read, or the disk is full
   */
  static async open(store: NodeStore): Promise<FollowedStore> {
    const found = await bringUp(store)
    const memtable = new Memtable()
    const environment = openEnvironment(store.path, 'write', memtable)
    const room = new Preallocation(store.path, environment)
    try {
      const { log, reader } = openLogOf(store, { memtable, environment, room })
      const followed = new FollowedStore(store, { memtable, environment, room, log, reader }, found)
      if (log.replayed > 0) followed.#settle()
      // Also what was erased while it was brought up, or before it was closed.
      followed.#scrub()
      return followed
    } catch (error) {
      room.close()
      await environment.root.close()
      throw error
    }
  }

  get at(): Followed {
    const { place, writer, isClosed } = this.#reader
    assert(writer !== undefined, 'a log has a first segment')
    return { segment: place.segment, writer, isClosed }
  }

  /**
   * Reads on to the end of the log. LMDB has it a moment later: what it lacks when it is closed, or a process ends, is read again.
   * What was erased it loses at once.
   * @throws Error when the log cannot be read, or does not go on from what the store has: it is to be opened anew
   */
  readOn(): void {
    const nowMs = steadyClock()
    const before = this.#reader.place.segment
    this.#hasGrown = false
    if (this.#log.readOn(this.#room) > 0) this.#waitingSinceMs ??= nowMs
    this.#hasGrown = this.#reader.place.segment > before
    if (this.#waitingSinceMs === undefined) return
    if (this.#log.erases || nowMs >= this.#waitingSinceMs + limits.clusterSettleMs) this.#settle()
  }

  /**
   * Looks whether the log still has what was read of it, and notes what is durable. A row that is seen may be on no standby yet; a
   * beat that was sent later and is confirmed stands behind it in the log of the database (docs/adr/0044-cluster-log.md).
   * @param beatMs when the last beat was sent that is confirmed, by the clock of the machine
   * @throws Error where the log has it no more: it is to be opened anew
   */
  confirm(beatMs: number): void {
    if (beatMs <= this.#beatMs) return
    this.#beatMs = beatMs
    const durable = this.#seen !== undefined && this.#seen.atMs < beatMs ? this.#seen.at : undefined
    const { place } = this.#reader
    const isThere = this.#store.line.confirm({ there: this.#hasGrown ? undefined : place, durable })
    if (!isThere)
      throw new Error(`Segment ${place.segment} is in the cluster’s log no more: it is read again`)
    if (durable !== undefined) this.#seen = undefined
    this.#seen ??= { at: { ...place }, atMs: machineClock() }
  }

  async close(): Promise<void> {
    await this.#log.close()
    this.#room.close()
    await this.#environment.root.close()
  }

  /** Has what was read in LMDB, and all that follows from it. */
  #settle(): void {
    this.#waitingSinceMs = undefined
    this.#log.flush(() => {})
    indexStore(this.#environment, (body) => commitDurably(this.#environment, () => this.#memtable.move(body)))
    this.#scrub()
  }

  /** Overwrites bodies that were erased: nobody else works on this store. */
  #scrub(): void {
    for (const scrubber = new Scrubber(this.#environment); scrubber.ready;) scrubber.step()
  }
}

/** A store that is open. */
interface Opened {
  memtable: Memtable
  environment: Environment
  room: Preallocation
  log: ShardLog
  reader: ClusterReader
}

function openLogOf(store: NodeStore, opened: Pick<Opened, 'memtable' | 'environment' | 'room'>) {
  let reader: ClusterReader | undefined
  const log = new ShardLog({
    path: store.path,
    ...opened,
    openLog(from, rowOf) {
      reader = readerOf(store, { from, rowOf })
      return new FollowedLog(reader, undefined)
    },
  })
  assert(reader !== undefined, 'a log is opened with its store')
  return { log, reader }
}
