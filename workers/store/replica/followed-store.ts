import { assert } from '../../../src/base/assert.js'
import { steadyClock, machineClock } from '../../../src/base/clock.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { SegmentName } from '../../../src/protocol/cluster-log-messages.js'
import { Scrubber } from '../scrubber.js'
import { type ClusterReader, FollowedLog } from './cluster-reader.js'
import type { Writer } from './cluster-segment.js'
import {
  type CatchUpResult,
  type NodeStore,
  catchUpStore,
  hasCheckpointAfter,
  readerOf,
} from './node-store.js'
import { ShardLog } from '../log/shard-log.js'

/** The progress of a store that follows its shard's log. */
export interface FollowedPosition {
  /** The last segment that was read. */
  segment: number
  /** The node that wrote it. It owns the shard if it is alive and has not closed the log. */
  writer: Writer
  isClosed: boolean
}

/**
 * The store of a shard that another node owns. It is kept open and up to date with the shard's log, so that
 * this node has little to read when it takes over the shard.
 */
export class FollowedStore {
  /** What `catchUpStore` did with the existing store. */
  readonly result: CatchUpResult
  readonly #reader: ClusterReader
  readonly #log: ShardLog
  readonly #store: NodeStore
  /**
   * A segment that was read, and when, by the clock of the machine. A confirmed heartbeat sent later shows
   * that it is durable.
   */
  #seen: { segment: SegmentName; readAtMs: number } | undefined
  /** When the last heartbeat that `confirm` used was sent. */
  #heartbeatMs = -Infinity
  /** Whether the last read found new segments, so that the log still has the earlier ones. */
  #hasGrown = false
  /** Since when rows in memory are not in LMDB; undefined if there are none. */
  #unflushedSinceMs: number | undefined

  private constructor(store: NodeStore, found: CatchUpResult) {
    let reader: ClusterReader | undefined
    this.result = found
    this.#store = store
    this.#log = new ShardLog(store.path, (from, rowOf) => {
      reader = readerOf(store, { from, rowOf })
      return new FollowedLog(reader)
    })
    assert(reader !== undefined, 'a log is opened with its store')
    this.#reader = reader
  }

  /**
   * Applies its shard's log to a store, or builds the store if it does not exist, and keeps it open.
   * @throws Error if the database cannot be read or the disk is full
   */
  static async open(store: NodeStore): Promise<FollowedStore> {
    const followed = new FollowedStore(store, await catchUpStore(store))
    try {
      if (followed.#log.replayed > 0) followed.#flush()
      // Also for bodies that were erased before the store was last closed.
      followed.#scrub()
      return followed
    } catch (error) {
      await followed.close()
      throw error
    }
  }

  get position(): FollowedPosition {
    const { position, writer, isClosed } = this.#reader
    assert(writer !== undefined, 'a log has a first segment')
    return { segment: position.segment, writer, isClosed }
  }

  /**
   * Reads new segments up to the end of the log. They reach LMDB after a delay, or immediately if they erase
   * records; segments that are not in LMDB when the store closes are read again.
   * @returns false if a checkpoint has replaced segments that were not read yet: open the store again
   * @throws Error if the log cannot be read or does not continue the store's history: open the store again
   */
  catchUp(): boolean {
    const nowMs = steadyClock()
    const before = this.#reader.position.segment
    this.#hasGrown = false
    try {
      if (this.#log.catchUp() > 0) this.#unflushedSinceMs ??= nowMs
    } catch (error) {
      if (!hasCheckpointAfter(this.#store, this.#reader.position.segment)) throw error
      return false
    }
    this.#hasGrown = this.#reader.position.segment > before
    if (this.#unflushedSinceMs === undefined) return true
    if (this.#log.hasErasures || nowMs >= this.#unflushedSinceMs + limits.clusterFlushAgeMs) this.#flush()
    return true
  }

  /**
   * Checks that the log still has the segments that were read, and records which are durable. A segment may
   * be read before it is on a standby of the database. A heartbeat that was sent later is after it in the log
   * of the database, so once the heartbeat is confirmed, the segment is durable
   * (docs/adr/0044-cluster-log.md).
   * @param heartbeatMs when the last confirmed heartbeat was sent, by the clock of the machine
   * @throws Error if the log has lost the segment: open the store again
   */
  confirm(heartbeatMs: number): void {
    if (heartbeatMs <= this.#heartbeatMs) return
    this.#heartbeatMs = heartbeatMs
    const durable =
      this.#seen !== undefined && this.#seen.readAtMs < heartbeatMs ? this.#seen.segment : undefined
    const { position } = this.#reader
    const isThere = this.#store.client.confirm({ there: this.#hasGrown ? undefined : position, durable })
    if (!isThere)
      throw new Error(`Segment ${position.segment} is no longer in the cluster’s log: reading the log again`)
    if (durable !== undefined) this.#seen = undefined
    this.#seen ??= { segment: { ...position }, readAtMs: machineClock() }
  }

  async close(): Promise<void> {
    await this.#log.close()
  }

  /** Writes the segments that were read, and the derived tables, to LMDB. */
  #flush(): void {
    this.#unflushedSinceMs = undefined
    this.#log.flushAndIndex()
    this.#scrub()
  }

  /** Overwrites erased bodies; no shard does it for this store. */
  #scrub(): void {
    for (const scrubber = new Scrubber(this.#log.environment); scrubber.ready;) scrubber.step()
  }
}
