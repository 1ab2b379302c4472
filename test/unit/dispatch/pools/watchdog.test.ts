import { beforeEach, describe, expect, it } from 'vitest'
import { Watchdog } from '../../../../src/dispatch/pools/watchdog.js'

const EVERY_MS = 250

let watchdog: Watchdog
let nowMs: number

beforeEach(() => {
  watchdog = new Watchdog(EVERY_MS)
  nowMs = 1_000_000
})

/** Looks once more, after `passedMs`. */
function look({ passedMs = EVERY_MS, waiting = true, steps = 7 } = {}): number {
  nowMs += passedMs
  return watchdog.look({ nowMs, waiting, steps })
}

describe('watchdog', () => {
  it('is the time over which a thread with something to do came no step further', () => {
    look()
    for (let looks = 1; looks <= 40; looks++) expect(look()).toBe(looks * EVERY_MS)
  })

  it('begins anew with every step', () => {
    look({ steps: 1 })
    expect(look({ steps: 1 })).toBe(EVERY_MS)
    expect(look({ steps: 2 })).toBe(0)
    expect(look({ steps: 2 })).toBe(EVERY_MS)
  })

  it('is none of a thread with nothing to do, and begins when it has something', () => {
    look({ waiting: false })
    for (let looks = 0; looks < 1_000; looks++) expect(look({ waiting: false })).toBe(0)
    expect(look()).toBe(EVERY_MS)
  })

  it('is not what whoever looks was silent: blocked, stopped or on a machine that slept', () => {
    look()
    expect(look({ passedMs: 3_600_000 })).toBe(EVERY_MS)
    expect(look()).toBe(2 * EVERY_MS)
  })
})
