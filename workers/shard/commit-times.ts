import { countInBucket, appendBoundsSecs, type ShardFigures } from '../../src/protocol/shard-figures.js'
import type { Clock } from '../../src/base/clock.js'

/** Measures how long commits take until they are on disk. */
export class CommitTimes {
  readonly #clock: Clock
  readonly #figures: ShardFigures
  /**
   * Commits that may not be on disk yet: the number of the segment and the start of the commit, by the steady
   * clock.
   */
  #inFlight: { segment: number; sinceMs: number }[] = []
  /** The start of the current period in which a commit was always in flight. */
  #busySinceMs = 0

  constructor(steadyClock: Clock, figures: ShardFigures) {
    this.#clock = steadyClock
    this.#figures = figures
  }

  written(segment: number, sinceMs: number): void {
    if (this.#inFlight.length === 0) this.#busySinceMs = sinceMs
    this.#inFlight.push({ segment, sinceMs })
  }

  /** Counts the commits up to a segment, which are on disk now. */
  durable(segment: number): void {
    if (this.#inFlight.length === 0) return
    const nowMs = this.#clock()
    for (const commit of this.#inFlight)
      if (commit.segment <= segment) this.#count((nowMs - commit.sinceMs) / 1_000)
    this.#inFlight = this.#inFlight.filter((commit) => commit.segment > segment)
    if (this.#inFlight.length === 0) this.#figures.commitSecs += (nowMs - this.#busySinceMs) / 1_000
  }

  #count(tookSecs: number): void {
    countInBucket(this.#figures.appendCounts, appendBoundsSecs, tookSecs)
    this.#figures.appendSecs += tookSecs
  }
}
