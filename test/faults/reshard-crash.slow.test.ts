import { expect, it } from 'vitest'
import { crashLoop } from '../../scripts/crash-loop/loop.mjs'
import { reshardAndKill } from '../../scripts/crash-loop/reshard.mjs'
import { count } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'

const KILLS = 3
const seed = runSeed('reshards')

it(
  `kills of a server and of reshards lose no record and duplicate none (seed ${seed})`,
  { timeout: 60_000 * KILLS },
  async () => {
    const lines: string[] = []
    const report = (line: string) => lines.push(line)
    const { faults, answered } = await crashLoop({ rounds: KILLS, seed, report, afterKill: reshardAndKill })
    expect(faults, lines.join('\n')).toEqual([])
    expect(answered).toBeGreaterThanOrEqual(KILLS)
    expect(lines.filter((line) => /\d to \d shards/.test(line))).toHaveLength(KILLS)
    count({ reshards: KILLS, answered })
  },
)
