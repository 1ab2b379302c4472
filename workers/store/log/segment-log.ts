import type { RowChange } from './row-change.js'
import type { SegmentContent, SegmentPlace } from './segment.js'

/** A segment of a log that is read. */
export interface LogSegment {
  /** Keys and values are views of what was read. */
  changes: Iterable<RowChange>
}

/**
 * What makes the writes of a shard durable: segments in order, each upon the one before. The shard needs nothing else of
 * it, wherever the segments lie; `Position` is what a log wants to be told to read on from a place.
 *
 * A segment is durable when `durable` has reached its number, and `written` segments of which that is not known may be
 * there or not. Whatever throws leaves that unknown: the shard must stop, and the next opening reads what is there.
 */
export interface SegmentLog<Position extends SegmentPlace> {
  /** Where the next segment will begin. */
  readonly end: Position
  /** The number of the last segment that is durable for sure. */
  readonly durable: number
  /** The segments from the end of the store on, in order; to be called before anything is appended. */
  read(): Iterable<LogSegment>
  /** Makes room for a segment with so much content. @returns false when there is none */
  reserve(contentBytes: number): boolean
  /** Appends a segment, which is durable after the next sync. */
  append(content: SegmentContent): void
  /** Waits until everything is durable. A log that another thread writes is waited for in shared memory. */
  syncNow(): void
  /**
   * Has everything that is appended by now made durable meanwhile. One sync is under way at a time.
   * @param then called when `durable` has gone on, or with the error after which the shard must stop
   */
  syncSoon(then: (error: Error | null) => void): void
  /** The store has everything up to here: what lies before it is needed no longer. */
  release(upTo: Position): void
  /** Makes unreadable all that was ever appended, which the store has up to the end; that is done when this returns. */
  wipe(): void
  /**
   * Says behind everything that its writer has given the shard up, where others wait for that.
   * @throws Error when that is not known; nothing may be appended afterwards
   */
  handOver(): void
  /** Ends it, once no sync is under way any more. */
  close(): Promise<void>
}
