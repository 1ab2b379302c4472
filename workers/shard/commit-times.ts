import { countInBucket, appendBoundsSecs, type ShardFigures } from '../../src/protocol/shard-figures.js'
import type { Clock } from '../../src/base/clock.js'

/** Counts how long commits take from their decision until they are on disk. */
export class CommitTimes {
  readonly #clock: Clock
  readonly #figures: ShardFigures
  /** Commits that may not be on disk yet: number of the segment, and when it was begun. */
  #underWay: { segment: number; sinceMs: number }[] = []
  /** Since when any was, without a break. */
  #busySinceMs = 0

  constructor(steadyClock: Clock, figures: ShardFigures) {
    this.#clock = steadyClock
    this.#figures = figures
  }

  /** A commit that was begun at a moment is written. */
  written(segment: number, sinceMs: number): void {
    if (this.#underWay.length === 0) this.#busySinceMs = sinceMs
    this.#underWay.push({ segment, sinceMs })
  }

  /** All commits up to one are on disk. */
  durable(segment: number): void {
    if (this.#underWay.length === 0) return
    const nowMs = this.#clock()
    for (const one of this.#underWay) if (one.segment <= segment) this.#count((nowMs - one.sinceMs) / 1_000)
    this.#underWay = this.#underWay.filter((one) => one.segment > segment)
    if (this.#underWay.length === 0) this.#figures.commitSecs += (nowMs - this.#busySinceMs) / 1_000
  }

  #count(tookSecs: number): void {
    countInBucket(this.#figures.appendCounts, appendBoundsSecs, tookSecs)
    this.#figures.appendSecs += tookSecs
  }
}
