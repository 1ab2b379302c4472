import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import {
  type LockoutState,
  afterFailure,
  lockoutExpiryMs,
  lockedForMs,
  noFailures,
} from '../../../src/auth/lockout.js'

const policy = { maxAttempts: 3, durationSecs: 900 }
const start = 1_700_000_000_000
const day = 86_400_000

/** The state after failures at the given times. */
function failing(...timesMs: number[]): LockoutState {
  return timesMs.reduce((state, nowMs) => afterFailure(state, policy, nowMs).state, noFailures)
}

describe('a lockout', () => {
  it('begins with the failure that reaches the limit, and lasts for the set duration', () => {
    const two = failing(start, start + 1)
    expect(lockedForMs(two, start + 1)).toBe(0)
    const third = afterFailure(two, policy, start + 2)
    expect(third.locked).toBe(true)
    expect(lockedForMs(third.state, start + 2)).toBe(900_000)
    expect(lockedForMs(third.state, start + 2 + 899_999)).toBe(1)
    expect(lockedForMs(third.state, start + 2 + 900_000)).toBe(0)
  })

  it('counts failures with long intervals', () => {
    expect(lockedForMs(failing(start, start + day / 2, start + day), start + day)).toBe(900_000)
  })

  it('is not prolonged by further failures', () => {
    const locked = failing(start, start, start)
    const again = afterFailure(locked, policy, start + 1_000)
    expect(again).toStrictEqual({ state: locked, locked: false })
  })

  it('restores all attempts when it ends', () => {
    const ended = start + 900_000
    const locked = failing(start, start, start)
    const one = afterFailure(locked, policy, ended)
    expect(one).toStrictEqual({
      state: { failures: 1, lockedUntilMs: 0, lastFailureAtMs: ended },
      locked: false,
    })
    const two = afterFailure(one.state, policy, ended)
    expect(two.locked).toBe(false)
    expect(afterFailure(two.state, policy, ended).locked).toBe(true)
  })

  it('begins with the first failure if one attempt is allowed', () => {
    expect(afterFailure(noFailures, { maxAttempts: 1, durationSecs: 1 }, start)).toStrictEqual({
      state: { failures: 0, lockedUntilMs: start + 1_000, lastFailureAtMs: start },
      locked: true,
    })
  })

  it('does not end earlier when the clock is turned back', () => {
    expect(lockedForMs(failing(start, start, start), start - 60_000)).toBe(960_000)
  })

  it('never allows more than the set number of failures within one duration', () => {
    const step = fc.integer({ min: 0, max: 400_000 })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let state = noFailures
        let nowMs = start
        const tried: number[] = []
        for (const pause of steps) {
          nowMs += pause
          if (lockedForMs(state, nowMs) === 0) tried.push(nowMs)
          state = afterFailure(state, policy, nowMs).state
        }
        // A whole duration passes between a failure that locks and the next attempt.
        for (let next = policy.maxAttempts; next < tried.length; next += policy.maxAttempts) {
          expect((tried[next] ?? 0) - (tried[next - 1] ?? 0)).toBeGreaterThanOrEqual(900_000)
        }
      }),
    )
  })
})

describe('an entry of the store', () => {
  it('is stored for a day after a failure', () => {
    expect(lockoutExpiryMs(failing(start), start)).toBe(start + day)
    expect(lockoutExpiryMs(failing(start - day, start), start)).toBe(start + day)
  })

  it('is stored during a lock and for a day after it', () => {
    expect(lockoutExpiryMs(failing(start, start, start), start)).toBe(start + 900_000 + day)
    const locked = afterFailure(noFailures, { maxAttempts: 1, durationSecs: 200_000 }, start).state
    expect(lockoutExpiryMs(locked, start)).toBe(start + 200_000_000 + day)
  })
})
