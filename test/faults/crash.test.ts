import { describe, expect, it } from 'vitest'
import { crashLoop } from '../../scripts/crash-loop/loop.mjs'
import { extent } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'

// A few kills find what is plainly wrong. `npm run crash` does as many as one likes.
const rounds = extent({ short: 8, ci: 500, full: 500 })

describe('a server that is killed under load', () => {
  it(
    'has everything that it answered, nothing twice, and strands that verify',
    { timeout: 30_000 * rounds },
    async () => {
      const lines: string[] = []
      const seed = runSeed('kills')
      const { faults, answered } = await crashLoop({ rounds, seed, report: (line) => lines.push(line) })
      expect(faults, lines.join('\n')).toEqual([])
      expect(lines).toHaveLength(rounds)
      expect(answered).toBeGreaterThan(rounds)
    },
  )
})
