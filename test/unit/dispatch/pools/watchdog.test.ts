import { beforeEach, describe, expect, it } from 'vitest'
import { Watchdog } from '../../../../src/dispatch/pools/watchdog.js'

const EVERY_MS = 250

let watchdog: Watchdog
let nowMs: number

beforeEach(() => {
  watchdog = new Watchdog(EVERY_MS)
  nowMs = 1_000_000
})

/** Checks again after `passedMs`. */
function look({ passedMs = EVERY_MS, waiting = true, steps = 7 } = {}): number {
  nowMs += passedMs
  return watchdog.look({ nowMs, waiting, steps })
}

describe('the time without progress', () => {
  it('grows with each check while a thread with work makes no progress', () => {
    look()
    for (let looks = 1; looks <= 40; looks++) expect(look()).toBe(looks * EVERY_MS)
  })

  it('restarts with every step', () => {
    look({ steps: 1 })
    expect(look({ steps: 1 })).toBe(EVERY_MS)
    expect(look({ steps: 2 })).toBe(0)
    expect(look({ steps: 2 })).toBe(EVERY_MS)
  })

  it('is zero for an idle thread and grows after it gets work', () => {
    look({ waiting: false })
    for (let looks = 0; looks < 1_000; looks++) expect(look({ waiting: false })).toBe(0)
    expect(look()).toBe(EVERY_MS)
  })

  it('excludes the time in which the checking thread was blocked or suspended', () => {
    look()
    expect(look({ passedMs: 3_600_000 })).toBe(EVERY_MS)
    expect(look()).toBe(2 * EVERY_MS)
  })
})
