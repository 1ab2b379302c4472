import { fc } from '../../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { sharedTableMemory } from '../../../../src/front/limits/shared-table.js'
import { SharedBuckets } from '../../../../src/front/limits/rate-buckets.js'
import {
  RateLimiter,
  rateLimitField,
  rateLimitPolicyField,
  retryAfterSecs,
} from '../../../../src/front/limits/rate-limit.js'

const startMs = 1_790_000_000_123.4

/** Takes until one is denied; gives how many were admitted. */
function drain(limiter: RateLimiter, address: string, nowMs: number): number {
  let admitted = 0
  while (limiter.take(address, nowMs) === 0) {
    admitted += 1
    if (admitted > 10_000) throw new Error('The limiter admits without end')
  }
  return admitted
}

type LimitSettings = ConstructorParameters<typeof RateLimiter>[0]

/** One front counts by itself, or several count together, each time another one. */
const kinds = {
  'of one front': (limit: LimitSettings) => new RateLimiter(limit),
  'of several fronts': (limit: LimitSettings) => {
    const memory = sharedTableMemory(limit.addressesMax, 'secret')
    const fronts = [0, 1, 2].map(() => new RateLimiter(limit, (rule) => new SharedBuckets(rule, memory)))
    let asked = 0
    return new Proxy(new RateLimiter(limit), {
      get: (_limiter, name) => {
        const front = fronts[asked++ % 3]
        const value: unknown = front && Reflect.get(front, name, front)
        return typeof value === 'function' ? value.bind(front) : value
      },
    })
  },
}

describe.each(Object.entries(kinds))('the rate limiter %s', (_kind, limiterOf) => {
  it('gives a new address the tokens of one second, not the burst', () => {
    const limiter = limiterOf({ ratePerSec: 100, burst: 200, addressesMax: 10 })
    expect(limiter.remaining('a', startMs)).toBe(100)
    expect(drain(limiter, 'a', startMs)).toBe(100)
    expect(limiter.remaining('a', startMs)).toBe(0)
    expect(limiter.take('a', startMs)).toBe(10)
  })

  it('never gives a new address more than the burst', () => {
    const limiter = limiterOf({ ratePerSec: 100, burst: 7, addressesMax: 10 })
    expect(drain(limiter, 'a', startMs)).toBe(7)
  })

  it('saves up tokens to the burst and no further', () => {
    const limiter = limiterOf({ ratePerSec: 100, burst: 200, addressesMax: 10 })
    limiter.take('a', startMs)
    expect(limiter.remaining('a', startMs + 500)).toBe(149)
    expect(limiter.remaining('a', startMs + 3_600_000)).toBe(200)
    expect(drain(limiter, 'a', startMs + 3_600_000)).toBe(200)
  })

  it('admits again after just the wait that it named', () => {
    for (const ratePerSec of [1, 3, 7, 100, 999]) {
      const limiter = limiterOf({ ratePerSec, burst: ratePerSec * 2, addressesMax: 10 })
      expect(drain(limiter, 'a', startMs)).toBe(ratePerSec)
      const waitMs = limiter.take('a', startMs)
      expect(waitMs).toBe(Math.ceil(1000 / ratePerSec - 0.01))
      if (waitMs > 1) expect(limiter.take('a', startMs + waitMs - 1)).toBeGreaterThan(0)
      expect(limiter.take('a', startMs + waitMs)).toBe(0)
    }
  })

  it('counts each address by itself', () => {
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

  it('is off at a rate or a burst of 0', () => {
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

  it('denies nobody for longer when the clock is set back', () => {
    const limiter = limiterOf({ ratePerSec: 10, burst: 20, addressesMax: 10 })
    drain(limiter, 'a', startMs)
    const earlierMs = startMs - 86_400_000
    expect(limiter.take('a', earlierMs)).toBe(100)
    expect(limiter.take('a', earlierMs + 100)).toBe(0)
  })

  it('forgets the least recently seen address once its bucket is as good as new', () => {
    const limiter = limiterOf({ ratePerSec: 2, burst: 4, addressesMax: 2 })
    drain(limiter, 'a', startMs)
    drain(limiter, 'b', startMs + 500)
    expect(drain(limiter, 'c', startMs + 1000)).toBe(2)
    expect(limiter.remaining('b', startMs + 1000)).toBe(1)
  })

  it('keeps a drained bucket while others cycle through addresses', () => {
    const limiter = limiterOf({ ratePerSec: 10, burst: 20, addressesMax: 100 })
    drain(limiter, 'a', startMs)
    for (let other = 0; other < 10_000; other += 1) limiter.take(`other ${other}`, startMs + 50)
    expect(limiter.remaining('a', startMs + 50)).toBe(0)
    expect(limiter.take('a', startMs + 50)).toBe(50)
  })

  it('lets addresses that find no room share one bucket, until there is room', () => {
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

  it('gives no address more than its rate allows, whatever others do to the table', () => {
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
 * Between any two admissions of an address lie at most a burst and what the rate gave meanwhile. The overflow
 * bucket may add a burst of its own over a whole run, once: it never refills faster than the rate either.
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
  it('name the policy as a full bucket and the seconds that it takes to fill', () => {
    expect(rateLimitPolicyField('global', { ratePerSec: 100, burst: 200 })).toBe('"global";q=200;w=2')
    expect(rateLimitPolicyField('auth', { ratePerSec: 10, burst: 25 })).toBe('"auth";q=25;w=3')
  })

  it('name what is left, and the wait of a denied request', () => {
    expect(rateLimitField('global', 0, 10)).toBe('"global";r=0;t=1')
    expect(rateLimitField('auth', 0, 1001)).toBe('"auth";r=0;t=2')
    expect(rateLimitField('auth', 7, 0)).toBe('"auth";r=7')
  })

  it('round the wait up to whole seconds', () => {
    expect([1, 999, 1000, 1001].map(retryAfterSecs)).toEqual([1, 1, 1, 2])
  })
})
