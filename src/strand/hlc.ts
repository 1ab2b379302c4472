import { assert } from '../base/assert.js'
import { limits } from '../base/limits/limits.js'

/** A timestamp of a hybrid logical clock (Kulkarni et al. 2014; docs/adr/0006-clocks.md). */
export interface Hlc {
  /** Unix milliseconds, 48 bits. */
  ms: number
  /** Distinguishes timestamps of one millisecond, 16 bits. */
  counter: number
}

const MS_MAX = 2 ** 48 - 1
const COUNTER_MAX = 0xffff

/** The smallest timestamp. */
export const zeroHlc: Hlc = { ms: 0, counter: 0 }

/** `<12 hex>-<4 hex>`: texts sort like the timestamps. */
export function formatHlc(hlc: Hlc): string {
  if (hlc.ms !== cachedMs) {
    cachedMs = hlc.ms
    cachedMsText = hlc.ms.toString(16).padStart(12, '0')
  }
  return `${cachedMsText}-${hlc.counter.toString(16).padStart(4, '0')}`
}

// Cached because records of one commit mostly share their millisecond.
let cachedMs = -1
let cachedMsText = ''

/** Parses the output of `formatHlc`; undefined for any other text. */
export function parseHlc(text: string): Hlc | undefined {
  if (!/^[0-9a-f]{12}-[0-9a-f]{4}$/.test(text)) return undefined
  return { ms: Number.parseInt(text.slice(0, 12), 16), counter: Number.parseInt(text.slice(13), 16) }
}

/** Negative if `a` is earlier than `b`, 0 if they are equal, positive if `a` is later. */
export function compareHlc(a: Hlc, b: Hlc): number {
  return a.ms - b.ms || a.counter - b.counter
}

/** The later of two timestamps. */
export function laterHlc(a: Hlc, b: Hlc): Hlc {
  return compareHlc(a, b) < 0 ? b : a
}

/**
 * The timestamp after `last` at `nowMs`: strictly later, even if the clock was turned back.
 * @returns undefined if it would be more than `limits.clockAheadMsMax` ahead of the clock (503 `clock_skew`)
 */
export function nextHlc(last: Hlc, nowMs: number): Hlc | undefined {
  if (nowMs > last.ms) return { ms: Math.floor(nowMs), counter: 0 }
  const next =
    last.counter < COUNTER_MAX ? { ms: last.ms, counter: last.counter + 1 } : { ms: last.ms + 1, counter: 0 }
  return next.ms - nowMs > limits.clockAheadMsMax || next.ms > MS_MAX ? undefined : next
}

/**
 * A clock whose timestamps only increase. It starts from the last timestamp that was written, so that a
 * restart does not turn it back. A shard has one for all its strands (docs/adr/0006-clocks.md).
 */
export class HlcClock {
  readonly #clock: () => number
  #last: Hlc

  constructor(clock: () => number, last: Hlc) {
    assert(last.ms >= 0 && last.ms <= MS_MAX, 'the milliseconds of an HLC have 48 bits')
    this.#clock = clock
    this.#last = last
  }

  /** The last timestamp that `next` returned, or the initial one. */
  get last(): Hlc {
    return this.#last
  }

  /** Moves the clock forward, so that `next` is later than a timestamp from another source. */
  advanceTo(timestamp: Hlc): void {
    if (compareHlc(timestamp, this.#last) > 0) this.#last = timestamp
  }

  /** The timestamp that `next` would return now. */
  peek(): Hlc | undefined {
    return nextHlc(this.#last, this.#clock())
  }

  /**
   * Returns a new timestamp, later than all before. Undefined as in `nextHlc`; the clock is then unchanged.
   */
  next(): Hlc | undefined {
    const next = this.peek()
    if (next !== undefined) this.#last = next
    return next
  }
}
