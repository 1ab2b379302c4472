import { expect, it } from 'vitest'
import { crashLoop } from '../../scripts/crash-loop/loop.mjs'
import { reshardAndKill } from '../../scripts/crash-loop/reshard.mjs'
import { extent } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'

const rounds = extent({ short: 2, ci: 10, full: 40 })
const seed = runSeed('reshards')

it(
  `loses nothing, and doubles nothing, where a server and the reshards after it are killed (seed ${seed})`,
  { timeout: 60_000 * rounds },
  async () => {
    const lines: string[] = []
    const report = (line: string) => lines.push(line)
    const { faults, answered } = await crashLoop({ rounds, seed, report, afterKill: reshardAndKill })
    expect(faults, lines.join('\n')).toEqual([])
    expect(answered).toBeGreaterThan(rounds)
    expect(lines.filter((line) => /\d to \d shards/.test(line))).toHaveLength(rounds)
  },
)
