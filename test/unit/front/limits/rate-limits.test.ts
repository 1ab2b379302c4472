import { fc } from '../../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { allocateTable } from '../../../../src/front/limits/shared-table.js'
import {
  RateLimiter,
  rateLimitField,
  rateLimitPolicyField,
  retryAfterSecs,
  SharedBuckets,
} from '../../../../src/front/limits/rate-limits.js'

const startMs = 1_790_000_000_123.4

/** Takes tokens until a request is denied. @returns how many were admitted */
function drain(limiter: RateLimiter, address: string, nowMs: number): number {
  let admitted = 0
  while (limiter.take(address, nowMs) === 0) {
    admitted += 1
    if (admitted > 10_000) throw new Error('The limiter never denies a request')
  }
  return admitted
}

type LimitSettings = ConstructorParameters<typeof RateLimiter>[0]

/** One front counts alone, or three fronts share a table and take turns. */
const limiters = {
  'of one front': (limit: LimitSettings) => new RateLimiter(limit),
  'of several fronts': (limit: LimitSettings) => {
    const memory = allocateTable(limit.addressesMax, 'secret')
    const fronts = [0, 1, 2].map(() => new RateLimiter(limit, (rule) => new SharedBuckets(rule, memory)))
    let calls = 0
    return new Proxy(new RateLimiter(limit), {
      get: (_limiter, name) => {
        const front = fronts[calls++ % 3]
        const value: unknown = front && Reflect.get(front, name, front)
        return typeof value === 'function' ? value.bind(front) : value
      },
    })
  },
}

describe.each(Object.entries(limiters))('the rate limiter %s', (_kind, limiterOf) => {
  it('starts a new address with the tokens of one second, not the burst', () => {
    const limiter = limiterOf({ ratePerSec: 100, burst: 200, addressesMax: 10 })
    expect(limiter.remaining('a', startMs)).toBe(100)
    expect(drain(limiter, 'a', startMs)).toBe(100)
    expect(limiter.remaining('a', startMs)).toBe(0)
    expect(limiter.take('a', startMs)).toBe(10)
  })

  it('never starts a new address with more than the burst', () => {
    const limiter = limiterOf({ ratePerSec: 100, burst: 7, addressesMax: 10 })
    expect(drain(limiter, 'a', startMs)).toBe(7)
  })

  it('accumulates tokens up to the burst', () => {
    const limiter = limiterOf({ ratePerSec: 100, burst: 200, addressesMax: 10 })
    limiter.take('a', startMs)
    expect(limiter.remaining('a', startMs + 500)).toBe(149)
    expect(limiter.remaining('a', startMs + 3_600_000)).toBe(200)
    expect(drain(limiter, 'a', startMs + 3_600_000)).toBe(200)
  })

  it('admits again exactly after the reported wait', () => {
    for (const ratePerSec of [1, 3, 7, 100, 999]) {
      const limiter = limiterOf({ ratePerSec, burst: ratePerSec * 2, addressesMax: 10 })
      expect(drain(limiter, 'a', startMs)).toBe(ratePerSec)
      const waitMs = limiter.take('a', startMs)
      expect(waitMs).toBe(Math.ceil(1000 / ratePerSec - 0.01))
      if (waitMs > 1) expect(limiter.take('a', startMs + waitMs - 1)).toBeGreaterThan(0)
      expect(limiter.take('a', startMs + waitMs)).toBe(0)
    }
  })

  it('counts each address separately', () => {
    const limiter = limiterOf({ ratePerSec: 2, burst: 4, addressesMax: 10 })
    drain(limiter, 'a', startMs)
    expect(drain(limiter, 'b', startMs)).toBe(2)
  })

  it('does not charge for a denied request', () => {
    const limiter = limiterOf({ ratePerSec: 1, burst: 2, addressesMax: 10 })
    drain(limiter, 'a', startMs)
    for (let denied = 0; denied < 50; denied += 1) {
      expect(limiter.take('a', startMs + denied * 10)).toBeGreaterThan(0)
    }
    expect(limiter.take('a', startMs + 1000)).toBe(0)
  })

  it('is off if the rate or the burst is 0', () => {
    for (const off of [
      { ratePerSec: 0, burst: 200 },
      { ratePerSec: 100, burst: 0 },
    ]) {
      const limiter = limiterOf({ ...off, addressesMax: 1 })
      expect(limiter.enabled).toBe(false)
      for (let requests = 0; requests < 1000; requests += 1) expect(limiter.take('a', startMs)).toBe(0)
      expect(limiter.remaining('a', startMs)).toBe(Infinity)
    }
  })

  it('denies no address for longer after the clock was set back', () => {
    const limiter = limiterOf({ ratePerSec: 10, burst: 20, addressesMax: 10 })
    drain(limiter, 'a', startMs)
    const earlierMs = startMs - 86_400_000
    expect(limiter.take('a', earlierMs)).toBe(100)
    expect(limiter.take('a', earlierMs + 100)).toBe(0)
  })

  it('evicts the least recently used address once its bucket is as full as a new one', () => {
    const limiter = limiterOf({ ratePerSec: 2, burst: 4, addressesMax: 2 })
    drain(limiter, 'a', startMs)
    drain(limiter, 'b', startMs + 500)
    expect(drain(limiter, 'c', startMs + 1000)).toBe(2)
    expect(limiter.remaining('b', startMs + 1000)).toBe(1)
  })

  it('does not evict a drained bucket while a client cycles through addresses', () => {
    const limiter = limiterOf({ ratePerSec: 10, burst: 20, addressesMax: 100 })
    drain(limiter, 'a', startMs)
    for (let other = 0; other < 10_000; other += 1) limiter.take(`other ${other}`, startMs + 50)
    expect(limiter.remaining('a', startMs + 50)).toBe(0)
    expect(limiter.take('a', startMs + 50)).toBe(50)
  })

  it('lets new addresses share one overflow bucket while the table is full', () => {
    const limiter = limiterOf({ ratePerSec: 3, burst: 6, addressesMax: 2 })
    drain(limiter, 'a', startMs)
    drain(limiter, 'b', startMs)
    let admitted = 0
    for (let other = 0; other < 100; other += 1) {
      if (limiter.take(`other ${other}`, startMs) === 0) admitted += 1
    }
    expect(admitted).toBe(6)
    expect(limiter.remaining('other 1', startMs)).toBe(0)
    expect(drain(limiter, 'other 1', startMs + 1000)).toBe(3)
  })

  it('admits no address above its rate, whatever requests other addresses send', () => {
    const afterMs = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(400) })
    const request = fc.record({ address: fc.integer({ min: 0, max: 7 }), afterMs })
    const settings = fc.record({
      ratePerSec: fc.integer({ min: 1, max: 5 }),
      burst: fc.integer({ min: 1, max: 10 }),
      addressesMax: fc.integer({ min: 1, max: 4 }),
    })
    fc.assert(
      fc.property(settings, fc.array(request, { minLength: 50, maxLength: 300 }), (limit, requests) => {
        const limiter = limiterOf(limit)
        const admittedAtMs = new Map<number, number[]>()
        let nowMs = startMs
        for (const { address, afterMs } of requests) {
          nowMs += afterMs
          if (limiter.take(String(address), nowMs) > 0) continue
          const times = admittedAtMs.get(address) ?? []
          times.push(nowMs)
          admittedAtMs.set(address, times)
        }
        for (const times of admittedAtMs.values()) expectWithinRate(times, limit)
      }),
      { numRuns: 300 },
    )
  })
})

/**
 * Between any two admissions of an address, at most a burst and the refilled tokens are used. The overflow
 * bucket can add one more burst over a whole run: it never refills faster than the rate either.
 */
function expectWithinRate(times: number[], limit: { ratePerSec: number; burst: number }): void {
  for (const [from, fromMs] of times.entries()) {
    for (const [to, toMs] of times.entries()) {
      if (to < from) continue
      const refilled = ((toMs - fromMs) / 1000) * limit.ratePerSec
      expect(to - from + 1).toBeLessThanOrEqual(2 * (limit.burst + refilled) + 0.1)
    }
  }
}

describe('the rate limit fields', () => {
  it('contain the bucket size and the seconds in which it fills', () => {
    expect(rateLimitPolicyField('global', { ratePerSec: 100, burst: 200 })).toBe('"global";q=200;w=2')
    expect(rateLimitPolicyField('auth', { ratePerSec: 10, burst: 25 })).toBe('"auth";q=25;w=3')
  })

  it('contain the tokens left, and the wait of a denied request', () => {
    expect(rateLimitField('global', 0, 10)).toBe('"global";r=0;t=1')
    expect(rateLimitField('auth', 0, 1001)).toBe('"auth";r=0;t=2')
    expect(rateLimitField('auth', 7, 0)).toBe('"auth";r=7')
  })

  it('round the wait up to whole seconds', () => {
    expect([1, 999, 1000, 1001].map(retryAfterSecs)).toEqual([1, 1, 1, 2])
  })
})
