import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildDiskShim, shimMissing, type DiskShim } from '../support/disk-shim.js'
import { failCall, type FailingCall } from '../support/failing-calls.js'
import { between, seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { extent, leftOut, runSeed } from '../support/faults.js'

/** Every how manieth call is made to fail. */
const step = extent({ short: 11, full: 1 })

/** Servers at once. */
const WIDTH = 3

const calls: FailingCall[] = [
  { kind: 'write', error: 'EIO' },
  { kind: 'write', error: 'ENOSPC' },
  { kind: 'short', error: 'ENOSPC' },
  { kind: 'late', error: 'EIO' },
  { kind: 'sync', error: 'EIO' },
  { kind: 'sync', error: 'ENOSPC' },
  { kind: 'open', error: 'EMFILE' },
]

const random = seededRandom(runSeed('failing calls'))

describe.skipIf(leftOut(shimMissing))('a server under which one call fails', () => {
  let shim: DiskShim
  beforeAll(() => {
    shim = buildDiskShim()
  })
  afterAll(() => shim.remove())

  it.each(calls)(
    'answers nothing wrong, serves on and loses nothing, whichever $kind fails with $error',
    { timeout: 900_000 },
    async (call) => {
      // Not the same ones each time.
      let nth = between(random, 1, step) - step
      let clean = false
      let refused = 0
      let crashes = 0
      const take = async () => {
        while (!clean) {
          nth += step
          const own = nth
          const run = await failCall(shim, call, own)
          expect(run.faults, `${call.kind} ${own} fails with ${call.error}`).toEqual([])
          refused += run.refused
          crashes += Number(run.crash !== undefined)
          if (!run.hit) clean = true
        }
      }
      await Promise.all(Array.from({ length: WIDTH }, take))
      console.log(
        `${call.kind} ${call.error}: up to number ${nth}; ${refused} requests refused, ${crashes} processes ended`,
      )
      expect(nth).toBeGreaterThan(step)
    },
  )
})
