// @run on the built program
import { readFileSync } from 'node:fs'
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { type Hlc, HlcClock, compareHlc, formatHlc, parseHlc, zeroHlc } from '../../../src/strand/hlc.js'
import { momentLower, momentUpper } from '../../../src/strand/moment.js'

interface HlcVectors {
  formats: { ms: number; counter: number; text: string }[]
  malformed: string[]
}
const vectors: HlcVectors = JSON.parse(
  readFileSync(new URL('../../vectors/hlc.json', import.meta.url), 'utf8'),
)
const timestamps = fc.record({ ms: fc.nat({ max: 2 ** 48 - 1 }), counter: fc.nat({ max: 0xffff }) })

describe('an HLC timestamp', () => {
  it.each(vectors.formats)('is rendered as $text and parsed again', ({ text, ...timestamp }) => {
    expect(formatHlc(timestamp)).toBe(text)
    expect(parseHlc(text)).toStrictEqual(timestamp)
  })

  it.each(vectors.malformed)('cannot be parsed from %j', (text) => {
    expect(parseHlc(text)).toBeUndefined()
  })

  it('sorts as text in the order of time', () => {
    fc.assert(
      fc.property(timestamps, timestamps, (a, b) => {
        const texts = formatHlc(a) < formatHlc(b) ? -1 : formatHlc(a) > formatHlc(b) ? 1 : 0
        expect(Math.sign(compareHlc(a, b))).toBe(texts)
      }),
    )
  })
})

describe('the clock of a strand', () => {
  it('strictly increases even if the machine clock jumps, and is never far ahead of it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -90_000, max: 90_000 }), { minLength: 1, maxLength: 100 }),
        (jumps) => {
          let nowMs = 1_000_000_000_000
          const clock = new HlcClock(() => nowMs, zeroHlc)
          let last: Hlc = zeroHlc
          for (const jump of jumps) {
            nowMs += jump
            const next = clock.next()
            if (next === undefined) {
              expect(last.ms - nowMs).toBeGreaterThan(limits.clockAheadMsMax - 1)
              expect(clock.last).toBe(last)
            } else {
              expect(compareHlc(next, last)).toBeGreaterThan(0)
              expect(next.ms - nowMs).toBeLessThanOrEqual(limits.clockAheadMsMax)
              last = next
            }
          }
        },
      ),
    )
  })

  it('uses the time of the machine with counter 0 if it is later', () => {
    expect(new HlcClock(() => 2_000, { ms: 1_000, counter: 9 }).next()).toStrictEqual({
      ms: 2_000,
      counter: 0,
    })
  })

  it('counts within a millisecond and uses the next one when the counter is full', () => {
    const clock = new HlcClock(() => 1_000, { ms: 1_000, counter: 0xfffe })
    expect(clock.next()).toStrictEqual({ ms: 1_000, counter: 0xffff })
    expect(clock.next()).toStrictEqual({ ms: 1_001, counter: 0 })
  })

  it('returns undefined beyond 60 seconds ahead and continues once the machine has caught up', () => {
    let nowMs = 100_000
    const clock = new HlcClock(() => nowMs, { ms: 160_000, counter: 0xffff })
    expect(clock.next()).toBeUndefined()
    nowMs = 100_001
    expect(clock.peek()).toStrictEqual({ ms: 160_001, counter: 0 })
    expect(clock.next()).toStrictEqual({ ms: 160_001, counter: 0 })
    expect(clock.last).toStrictEqual({ ms: 160_001, counter: 0 })
  })
})

describe('a clock that receives a timestamp from another source', () => {
  it('continues after a later timestamp, and ignores an earlier one', () => {
    const clock = new HlcClock(() => 1_000, { ms: 990, counter: 0 })
    clock.advanceTo({ ms: 980, counter: 5 })
    expect(clock.last).toEqual({ ms: 990, counter: 0 })
    clock.advanceTo({ ms: 2_000, counter: 7 })
    expect(clock.next()).toEqual({ ms: 2_000, counter: 8 })
  })
})

describe('a moment of the JSON interface', () => {
  const ms = Date.UTC(2026, 1, 3, 4, 5, 6, 789)

  it.each([
    [ms, ms],
    [String(ms), ms],
    [0, 0],
    ['0', 0],
    ['2026-02-03T04:05:06.789Z', ms],
    ['2026-02-03T04:05:06.789999Z', ms],
    ['2026-02-03T05:35:06.789+01:30', ms],
    ['2026-02-03T03:05:06,789-0100', ms],
    ['2026-02-03T04:05:06.789', ms],
    ['2026-02-03T04:05:06Z', ms - 789],
    ['2026-02-03T04:05Z', ms - 6_789],
    ['2026-02-03', Date.UTC(2026, 1, 3)],
    ['2024-02-29', Date.UTC(2024, 1, 29)],
    ['1970-01-02', 86_400_000],
    [100_000_000_000, 100_000_000_000],
    ['100000000000', 100_000_000_000],
  ])('is parsed from %j as a whole millisecond', (value, expected) => {
    expect(momentLower(value)).toStrictEqual({ ms: expected, counter: 0 })
    expect(momentUpper(value)).toStrictEqual({ ms: expected, counter: 0xffff })
  })

  it('is parsed from an HLC as one timestamp', () => {
    const timestamp = { ms: 0x0199c5b8f2a4, counter: 3 }
    expect(momentLower('0199c5b8f2a4-0003')).toStrictEqual(timestamp)
    expect(momentUpper('0199c5b8f2a4-0003')).toStrictEqual(timestamp)
  })

  it.each([
    [-1],
    [1.5],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [2 ** 48],
    [''],
    ['now'],
    ['-1'],
    ['281474976710656'],
    // A year, a date without hyphens, seconds: these were once read as milliseconds of 1970.
    [2027],
    ['2027'],
    [20_270_101],
    ['20270101'],
    [1_790_000_000],
    ['1790000000'],
    [99_999_999_999],
    ['99999999999'],
    [1],
    ['0000'],
    ['01790000000000'],
    ['2026-02-30'],
    ['2026-13-01'],
    ['2025-02-29'],
    ['2026-02-03T24:00:00Z'],
    ['2026-02-03 04:05:06Z'],
    ['1969-12-31'],
    ['0199C5B8F2A4-0003'],
    ['2026-02-03T04:05:06+24:00'],
  ])('cannot be parsed from %j', (value) => {
    expect(momentLower(value)).toBeUndefined()
    expect(momentUpper(value)).toBeUndefined()
  })
})
