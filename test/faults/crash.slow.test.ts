// @run first
import { describe, expect, it } from 'vitest'
import { crashLoop } from '../../scripts/crash-loop/loop.mjs'
import { count, sideBySide } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'

const KILLS = 60

describe('a server that is killed under load', () => {
  it(
    'loses nothing that it acknowledged, has no duplicates, and its strands verify',
    { timeout: 30_000 * KILLS },
    async () => {
      const lines: string[] = []
      const seed = runSeed('kills')
      const found = await sideBySide(KILLS, (share, nth) =>
        crashLoop({ rounds: share, seed: seed + nth, report: (line) => lines.push(line) }),
      )
      expect(
        found.flatMap(({ faults }) => faults),
        lines.join('\n'),
      ).toEqual([])
      expect(lines).toHaveLength(KILLS)
      const answered = found.reduce((sum, one) => sum + one.answered, 0)
      // A server under load has answered something before it is killed; first starts are not under load.
      expect(answered).toBeGreaterThan(KILLS / 2)
      count({ kills: KILLS, answered })
    },
  )
})
