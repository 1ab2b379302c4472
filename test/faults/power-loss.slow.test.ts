// @run first
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildDiskShim, shimMissing, type DiskShim } from '../support/faults/disk-shim.js'
import { count, leftOut, sideBySide } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'
import { losePower } from '../support/faults/power-loss.js'

const LOSSES = 20

describe.skipIf(leftOut(shimMissing))('a server that loses its power under load', () => {
  let shim: DiskShim
  beforeAll(() => {
    shim = buildDiskShim()
  })
  afterAll(() => shim.remove())

  it(
    'loses nothing that it acknowledged, has no duplicates, and its strands verify',
    { timeout: 20_000 * LOSSES },
    async () => {
      const seed = runSeed('power loss')
      const found = await sideBySide(LOSSES, (share, nth) =>
        losePower(shim, { rounds: share, seed: seed + nth }),
      )
      for (const { faults, kept } of found)
        expect(faults, `the directory was not deleted: ${kept}`).toEqual([])
      const losses = found.reduce((sum, { cuts }) => sum + cuts, 0)
      const answered = found.reduce((sum, one) => sum + one.answered, 0)
      expect(losses).toBeGreaterThanOrEqual(LOSSES)
      expect(answered).toBeGreaterThan(LOSSES)
      count({ losses, answered })
    },
  )
})
