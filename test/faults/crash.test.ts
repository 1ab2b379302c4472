import { describe, expect, it } from 'vitest'
import { crashLoop } from '../../scripts/crash-loop/loop.mjs'

// Six kills find what is plainly wrong; the whole check does fifty. `npm run crash` does as many as one likes.
const rounds = process.env['CI'] === 'true' ? 50 : 6

describe('a server that is killed under load', () => {
  it(
    'has everything that it answered, nothing twice, and strands that verify',
    { timeout: 60_000 * rounds },
    async () => {
      const lines: string[] = []
      const { faults, answered } = await crashLoop({ rounds, seed: 20, report: (line) => lines.push(line) })
      expect(faults, lines.join('\n')).toEqual([])
      expect(lines).toHaveLength(rounds)
      expect(answered).toBeGreaterThan(rounds)
    },
  )
})
