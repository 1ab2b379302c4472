import { beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../../../../src/base/limits/limits.js'
import { Revocations } from '../../../../../src/front/http/auth/revocations.js'

const HOUR_MS = 3_600_000

let wallMs: number
let steadyMs: number
let revocations: Revocations

beforeEach(() => {
  wallMs = Date.UTC(2026, 0, 1)
  steadyMs = 5_000
  revocations = new Revocations(
    () => wallMs,
    () => steadyMs,
  )
})

/** Revokes a session for an hour. */
function revoke(id: string): void {
  revocations.add('root', { what: 'sid', id, untilMs: wallMs + HOUR_MS })
}

function pass(ms: number): void {
  wallMs += ms
  steadyMs += ms
}

describe('a revocation', () => {
  it('is forgotten when its tokens have expired', () => {
    revoke('first')
    pass(HOUR_MS - 1)
    revoke('second')
    expect(revocations.size).toBe(2)
    pass(limits.revocationSweepMs)
    revoke('third')
    expect(revocations.size).toBe(2)
  })

  it('is not forgotten when the wall clock jumps ahead, because it may be set back', () => {
    revoke('first')
    wallMs += 12 * HOUR_MS
    steadyMs += limits.revocationSweepMs
    revoke('second')
    expect(revocations.size).toBe(2)
  })

  it('is forgotten after the wall clock jumped back, once it has caught up', () => {
    revoke('first')
    wallMs -= 12 * HOUR_MS
    pass(2 * HOUR_MS)
    revoke('second')
    expect(revocations.size).toBe(2)
    pass(12 * HOUR_MS)
    revoke('third')
    expect(revocations.size).toBe(1)
  })
})
