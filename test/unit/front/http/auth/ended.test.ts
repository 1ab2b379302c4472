import { beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../../../../src/base/limits/limits.js'
import { Revocations } from '../../../../../src/front/http/auth/revocations.js'

const HOUR_MS = 3_600_000

let wallMs: number
let steadyMs: number
let ended: Revocations

beforeEach(() => {
  wallMs = Date.UTC(2026, 0, 1)
  steadyMs = 5_000
  ended = new Revocations(
    () => wallMs,
    () => steadyMs,
  )
})

/** Ends something for an hour. */
function end(id: string): void {
  ended.add('root', { what: 'sid', id, untilMs: wallMs + HOUR_MS })
}

function pass(ms: number): void {
  wallMs += ms
  steadyMs += ms
}

describe('what has ended', () => {
  it('is forgotten when its tokens have expired', () => {
    end('first')
    pass(HOUR_MS - 1)
    end('second')
    expect(ended.size).toBe(2)
    pass(limits.endedSweepMs)
    end('third')
    expect(ended.size).toBe(2)
  })

  it('is not forgotten because the time of day jumps ahead, from where it may come back', () => {
    end('first')
    wallMs += 12 * HOUR_MS
    steadyMs += limits.endedSweepMs
    end('second')
    expect(ended.size).toBe(2)
  })

  it('is forgotten all the same when the time of day jumped back, once that has caught up', () => {
    end('first')
    wallMs -= 12 * HOUR_MS
    pass(2 * HOUR_MS)
    end('second')
    expect(ended.size).toBe(2)
    pass(12 * HOUR_MS)
    end('third')
    expect(ended.size).toBe(1)
  })
})
