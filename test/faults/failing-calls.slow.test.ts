// @run first
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildDiskShim, shimMissing, type DiskShim } from '../support/faults/disk-shim.js'
import {
  failFromStart,
  failWhileRunning,
  type FailedCalls,
  type Numbers,
} from '../support/faults/failing-calls.js'
import type { FailingCall } from '../support/faults/failing-disk.js'
import { count, leftOut } from '../support/faults/rounds.js'
import { seed } from '../support/run-seed.js'

/**
 * One in this many calls fails. Which one depends on the seed, so that as many consecutive seeds cover all
 * calls.
 */
const STEP = 397
const first = (seed % STEP) + 1

/** Simultaneous servers. */
const WIDTH = 2

/** Calls fail with these errors alternately. */
const errors: FailingCall['errors'] = ['EIO', 'ENOSPC']

const calls: FailingCall[] = [
  { kind: 'write', errors },
  { kind: 'short', errors: ['ENOSPC'] },
  { kind: 'late', errors: ['EIO'] },
  { kind: 'sync', errors },
  { kind: 'open', errors: ['EMFILE'] },
]

/** A server opens its files only at its start, so open calls are counted from there. */
const opensOnce = ({ kind }: FailingCall) => kind === 'open'

describe.skipIf(leftOut(shimMissing))('a server with one failing call', () => {
  let shim: DiskShim
  beforeAll(() => {
    shim = buildDiskShim()
  })
  afterAll(() => shim.remove())

  it.each(calls)(
    'starts or reports why not, continues to serve and loses nothing, whichever $kind fails',
    { timeout: 900_000 },
    async (call) => {
      const total: FailedCalls = { faults: [], refused: 0, ended: 0 }
      let nth = first - STEP
      let started = false
      let clean = false
      const take = async () => {
        while (!clean) {
          nth += STEP
          const number = nth
          const found = await failFromStart(shim, call, number)
          expect(found.faults, `${call.kind} ${number} fails`).toEqual([])
          add(total, found)
          if (found.hit !== 'start') started = true
          if (found.hit === undefined) clean = true
        }
      }
      await Promise.all(Array.from({ length: WIDTH }, take))
      report(call, `from its start up to number ${nth}`, total)
      expect(started).toBe(true)
      expect(nth).toBeGreaterThan(STEP)
      count({ failedCalls: Math.ceil(nth / STEP) })
    },
  )

  it.each(calls.filter((call) => !opensOnce(call)))(
    'continues to serve and loses nothing, whichever $kind of a request fails',
    { timeout: 900_000 },
    async (call) => {
      const numbers: Numbers = { last: first - STEP, step: STEP, ended: false }
      const total: FailedCalls = { faults: [], refused: 0, ended: 0 }
      const take = async () => add(total, await failWhileRunning(shim, call, numbers))
      await Promise.all(Array.from({ length: WIDTH }, take))
      expect(total.faults, `${call.kind} fails`).toEqual([])
      report(call, `of a few requests up to number ${numbers.last}`, total)
      expect(numbers.last).toBeGreaterThan(STEP)
      count({ failedCalls: Math.ceil(numbers.last / STEP) })
    },
  )
})

function add(total: FailedCalls, { faults, refused, ended }: FailedCalls): void {
  total.faults.push(...faults)
  total.refused += refused
  total.ended += ended
}

function report({ kind }: FailingCall, extentOf: string, { refused, ended }: FailedCalls): void {
  console.log(`${kind}, ${extentOf}: ${refused} requests refused, ${ended} processes ended`)
}
