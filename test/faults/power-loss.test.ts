import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildDiskShim, shimMissing, type DiskShim } from '../support/faults/disk-shim.js'
import { extent, leftOut, sideBySide } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'
import { losePower } from '../support/faults/power-loss.js'

const rounds = extent({ short: 2, ci: 200, full: 200 })

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
      const seed = runSeed('power loss')
      const found = await sideBySide(rounds, (share, nth) =>
        losePower(shim, { rounds: share, seed: seed + nth }),
      )
      for (const { faults, kept } of found) expect(faults, `the directory is kept: ${kept}`).toEqual([])
      expect(found.reduce((sum, { cuts }) => sum + cuts, 0)).toBeGreaterThanOrEqual(rounds)
      expect(found.reduce((sum, { answered }) => sum + answered, 0)).toBeGreaterThan(rounds)
    },
  )
})
