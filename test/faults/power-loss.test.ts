import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildDiskShim, shimMissing, type DiskShim } from '../support/faults/disk-shim.js'
import { extent, leftOut } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'
import { losePower } from '../support/faults/power-loss.js'

const rounds = extent({ short: 3, ci: 200, full: 200 })

describe.skipIf(leftOut(shimMissing))('a server that loses its power under load', () => {
  let shim: DiskShim
  beforeAll(() => {
    shim = buildDiskShim()
  })
  afterAll(() => shim.remove())

  it(
    'has everything that it answered, nothing twice, and strands that verify, on whatever the disk has kept',
    { timeout: 20_000 * rounds },
    async () => {
      const { faults, kept, cuts, answered } = await losePower(shim, { rounds, seed: runSeed('power loss') })
      expect(faults, `the directory is kept: ${kept}`).toEqual([])
      expect(cuts).toBeGreaterThanOrEqual(rounds)
      expect(answered).toBeGreaterThan(rounds)
    },
  )
})
