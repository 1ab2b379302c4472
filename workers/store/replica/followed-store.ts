import { assert } from '../../../src/base/assert.js'
import { steadyClock, machineClock } from '../../../src/base/clock.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { SegmentName } from '../../../src/protocol/cluster-log-messages.js'
import { Scrubber } from '../scrubber.js'
import { type ClusterReader, FollowedLog } from './cluster-reader.js'
import type { Writer } from './cluster-segment.js'
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

  private constructor(store: NodeStore, found: Found) {
    let reader: ClusterReader | undefined
    this.found = found
    this.#store = store
    this.#log = new ShardLog(store.path, (from, rowOf) => {
      reader = readerOf(store, { from, rowOf })
      return new FollowedLog(reader)
    })
    assert(reader !== undefined, 'a log is opened with its store')
    this.#reader = reader
  }

  /**
   * Brings a store up to its shard's log, makes it where it is not there, and keeps it open.
   * @throws Error when the database cannot be read, or the disk is full
   */
  static async open(store: NodeStore): Promise<FollowedStore> {
    const followed = new FollowedStore(store, await bringUp(store))
    try {
      if (followed.#log.replayed > 0) followed.#settle()
      // Also what was erased while it was brought up, or before it was closed.
      followed.#scrub()
      return followed
    } catch (error) {
      await followed.close()
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
    if (this.#log.readOn() > 0) this.#waitingSinceMs ??= nowMs
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
  }

  /** Has what was read in LMDB, and all that follows from it. */
  #settle(): void {
    this.#waitingSinceMs = undefined
    this.#log.settle()
    this.#scrub()
  }

  /** Overwrites bodies that were erased: nobody else works on this store. */
  #scrub(): void {
    for (const scrubber = new Scrubber(this.#log.environment); scrubber.ready;) scrubber.step()
  }
}
