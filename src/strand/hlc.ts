import { assert } from '../base/assert.js'
import { limits } from '../base/limits/limits.js'

/** A hybrid logical clock's reading (Kulkarni et al. 2014; docs/adr/0006-clocks.md). */
export interface Hlc {
  /** Unix milliseconds, 48 bits. */
  ms: number
  /** Distinguishes readings of one millisecond, 16 bits. */
  counter: number
}

const MS_MAX = 2 ** 48 - 1
const COUNTER_MAX = 0xffff

/** The reading before every other. */
export const zeroHlc: Hlc = { ms: 0, counter: 0 }

/** `<12 hex>-<4 hex>`: texts sort like the readings. */
export function formatHlc(hlc: Hlc): string {
  if (hlc.ms !== shownMs) {
    shownMs = hlc.ms
    shownMsText = hlc.ms.toString(16).padStart(12, '0')
  }
  return `${shownMsText}-${hlc.counter.toString(16).padStart(4, '0')}`
}

// Records that are committed together mostly share their millisecond.
let shownMs = -1
let shownMsText = ''

/** Reads what `formatHlc` writes, and nothing else. */
export function parseHlc(text: string): Hlc | undefined {
  if (!/^[0-9a-f]{12}-[0-9a-f]{4}$/.test(text)) return undefined
  return { ms: Number.parseInt(text.slice(0, 12), 16), counter: Number.parseInt(text.slice(13), 16) }
}

/** Negative when `a` is earlier than `b`, 0 when they are the same, positive when it is later. */
export function compareHlc(a: Hlc, b: Hlc): number {
  return a.ms - b.ms || a.counter - b.counter
}

/** The later of two readings. */
export function laterHlc(a: Hlc, b: Hlc): Hlc {
  return compareHlc(a, b) < 0 ? b : a
}

/**
 * The reading after `last` at `nowMs`: strictly later, however the clock jumps.
 * @returns undefined when it would run more than `limits.clockAheadMsMax` ahead of the clock (503 `clock_skew`)
 */
export function nextHlc(last: Hlc, nowMs: number): Hlc | undefined {
  if (nowMs > last.ms) return { ms: Math.floor(nowMs), counter: 0 }
  const next =
    last.counter < COUNTER_MAX ? { ms: last.ms, counter: last.counter + 1 } : { ms: last.ms + 1, counter: 0 }
  return next.ms - nowMs > limits.clockAheadMsMax || next.ms > MS_MAX ? undefined : next
}

/**
 * A clock whose readings only rise. It starts from the last reading that was written, so a restart does not turn it
 * back; a shard has one for all its strands (docs/adr/0006-clocks.md).
 */
export class HlcClock {
  readonly #clock: () => number
  #last: Hlc

  constructor(clock: () => number, last: Hlc) {
    assert(last.ms >= 0 && last.ms <= MS_MAX, 'the milliseconds of an HLC have 48 bits')
    this.#clock = clock
    this.#last = last
  }

  /** The last reading given out, or the one it started from. */
  get last(): Hlc {
    return this.#last
  }

  /** Moves forward to a reading from elsewhere, so that `next` is later than it. */
  pass(reading: Hlc): void {
    if (compareHlc(reading, this.#last) > 0) this.#last = reading
  }

  /** What `next` would give now, without taking it. */
  peek(): Hlc | undefined {
    return nextHlc(this.#last, this.#clock())
  }

  /** A new reading, later than every one before; undefined as in `nextHlc`, and then the clock stays as it is. */
  next(): Hlc | undefined {
    const next = this.peek()
    if (next !== undefined) this.#last = next
    return next
  }
}
