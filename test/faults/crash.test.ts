import { describe, expect, it } from 'vitest'
import { crashLoop } from '../../scripts/crash-loop/loop.mjs'
import { extent, sideBySide } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'

// A few kills find what is plainly wrong. `npm run crash` does as many as one likes.
const rounds = extent({ short: 4, ci: 500, full: 500 })

describe('a server that is killed under load', () => {
  it(
    'has everything that it answered, nothing twice, and strands that verify',
    { timeout: 30_000 * rounds },
    async () => {
      const lines: string[] = []
      const seed = runSeed('kills')
      const found = await sideBySide(rounds, (share, nth) =>
        crashLoop({ rounds: share, seed: seed + nth, report: (line) => lines.push(line) }),
      )
      expect(
        found.flatMap(({ faults }) => faults),
        lines.join('\n'),
      ).toEqual([])
      expect(lines).toHaveLength(rounds)
      expect(found.reduce((sum, { answered }) => sum + answered, 0)).toBeGreaterThan(rounds)
    },
  )
})
