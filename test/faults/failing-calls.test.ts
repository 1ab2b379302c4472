import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { between, seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { buildDiskShim, shimMissing, type DiskShim } from '../support/faults/disk-shim.js'
import {
  failFromStart,
  failWhileRunning,
  type FailedCalls,
  type Numbers,
} from '../support/faults/failing-calls.js'
import type { FailingCall } from '../support/faults/failing-disk.js'
import { extent, leftOut } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'

/** Every how manieth call is made to fail: of a start and of the requests to a server that runs, one by one in CI. */
const step = extent({ short: 41, ci: 1, full: 1 })

/** Of the first requests to a server that was just started. */
const laterStep = extent({ short: 41, ci: 11, full: 1 })

/** Servers at once. */
const WIDTH = 3

const random = seededRandom(runSeed('failing calls'))

/** Calls fail with the one and the other in turn; chance says with which the first does. */
const errors: FailingCall['errors'] = random() < 0.5 ? ['EIO', 'ENOSPC'] : ['ENOSPC', 'EIO']

const calls: FailingCall[] = [
  { kind: 'write', errors },
  { kind: 'short', errors: ['ENOSPC'] },
  { kind: 'late', errors: ['EIO'] },
  { kind: 'sync', errors },
  { kind: 'open', errors: ['EMFILE'] },
]

/** A server opens its files once, so these are counted from its start only. */
const opensOnce = ({ kind }: FailingCall) => kind === 'open'

describe.skipIf(leftOut(shimMissing))('a server under which one call fails', () => {
  let shim: DiskShim
  beforeAll(() => {
    shim = buildDiskShim()
  })
  afterAll(() => shim.remove())

  it.each(calls)(
    'starts or says why not, serves on and loses nothing, whichever $kind fails',
    { timeout: 900_000 },
    async (call) => {
      const total: FailedCalls = { faults: [], refused: 0, ended: 0 }
      // Not the same ones each time.
      let nth = between(random, 1, step) - step
      let started = false
      let clean = false
      const take = async () => {
        while (!clean) {
          nth += started && !opensOnce(call) ? between(random, 1, 2 * laterStep - 1) : step
          const own = nth
          const found = await failFromStart(shim, call, own)
          expect(found.faults, `${call.kind} ${own} fails`).toEqual([])
          add(total, found)
          if (found.hit !== 'start') started = true
          if (found.hit === undefined) clean = true
        }
      }
      await Promise.all(Array.from({ length: WIDTH }, take))
      tell(call, `from its start up to number ${nth}`, total)
      expect(started).toBe(true)
      expect(nth).toBeGreaterThan(step)
    },
  )

  it.each(calls.filter((call) => !opensOnce(call)))(
    'serves on and loses nothing, whichever $kind of a request fails',
    { timeout: 900_000 },
    async (call) => {
      const numbers: Numbers = { last: between(random, 1, step) - step, step, ended: false }
      const total: FailedCalls = { faults: [], refused: 0, ended: 0 }
      const take = async () => add(total, await failWhileRunning(shim, call, numbers))
      await Promise.all(Array.from({ length: WIDTH }, take))
      expect(total.faults, `${call.kind} fails`).toEqual([])
      tell(call, `of a few requests up to number ${numbers.last}`, total)
      expect(numbers.last).toBeGreaterThan(step)
    },
  )
})

function add(total: FailedCalls, { faults, refused, ended }: FailedCalls): void {
  total.faults.push(...faults)
  total.refused += refused
  total.ended += ended
}

function tell({ kind }: FailingCall, extentOf: string, { refused, ended }: FailedCalls): void {
  console.log(`${kind}, ${extentOf}: ${refused} requests refused, ${ended} processes ended`)
}
