import type { RowChange } from './row-change.js'
import type { SegmentContent, SegmentId } from './segment.js'

/** A segment that was read from a log. */
export interface LogSegment {
  /** Keys and values are views of the bytes that were read. */
  changes: Iterable<RowChange>
}

/**
 * The log that makes the writes of a shard durable: segments in order, each linked to the previous one. The
 * segments may be in files or in the database of a cluster; `Position` is where reading can resume.
 *
 * A segment is durable once `durable` has reached its number. After an error it is unknown which later
 * segments exist: the shard must stop, and the next opening reads the segments that do.
 */
export interface SegmentLog<Position extends SegmentId> {
  readonly end: Position
  /** The number of the last segment that is known to be durable. */
  readonly durable: number
  /** The segments after the store's position, in order. Call it before anything is appended. */
  read(): Iterable<LogSegment>
  /** Reserves space for a segment with so many bytes of content. @returns false if the disk is full */
  reserve(contentBytes: number): boolean
  /** Appends a segment, which is durable when `durable` says so, and after the next sync. */
  append(content: SegmentContent): void
  /** Blocks until all segments are durable. If another thread writes the log, this waits in shared memory. */
  syncNow(): void
  /**
   * Starts a sync of all segments appended so far and returns. Only one sync is in progress at a time.
   * @param then called when `durable` has advanced, or with the error after which the shard must stop
   */
  syncSoon(then: (error: Error | null) => void): void
  /** Releases the segments before `upTo`, which the store has. */
  release(upTo: Position): void
  /** Destroys the content of all segments. The store must have all of them. */
  wipe(): void
  /**
   * Appends a closing segment, so that another node may open the shard. Nothing may be appended afterwards.
   * @throws Error if it is unknown whether the segment is durable
   */
  transfer(): void
  /** Closes the log after the current sync. */
  close(): Promise<void>
}
