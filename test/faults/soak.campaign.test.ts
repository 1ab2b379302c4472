import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { soak } from '../../scripts/soak/run.mjs'
import { count } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'

/** The total time of the loads in this file, set by `npm run campaign -- soak --minutes N`. */
const minutes = Number(process.env['STRANDFAST_MINUTES'] ?? 60)
/** In a shorter time, a heap that fills up looks like a leak. */
const LEAK_MINUTES = 1

describe('a server under a steady load', { timeout: (minutes + 10) * 60_000 }, () => {
  it('does not grow in memory, handles, threads or file sizes', async () => {
    const lines: string[] = []
    const soaked = 0.6 * minutes
    const report = (line: string) => lines.push(line)
    const { verdicts, faults, records } = await soak({
      minutes: soaked,
      seed: runSeed('soak'),
      rate: 500,
      report,
    })
    expect(faults).toEqual([])
    expect(
      verdicts.filter(({ flat }) => !flat),
      lines.join('\n'),
    ).toEqual([])
    expect(records).toBeGreaterThan(soaked * 1_200)
    count({ soakMinutes: Math.round(soaked), records })
  })

  it('loses nothing that it acknowledged and does not replay more and more, when it is killed repeatedly', async () => {
    const lines: string[] = []
    const { verdicts, faults, starts } = await soak({
      minutes: 0.25 * minutes,
      seed: runSeed('soak with crashes'),
      rate: 200,
      filled: 0,
      crashEverySecs: 5,
      report: (line: string) => lines.push(line),
    })
    expect(faults).toEqual([])
    expect(starts.length).toBeGreaterThan(2)
    // The time of a start depends on the load of the machine.
    const grown = verdicts.filter(({ name, flat }) => !flat && name !== 'start after a crash')
    expect(grown, lines.join('\n')).toEqual([])
    count({ soakKills: starts.length })
  })

  it('fails the check when it leaks', async () => {
    const preload = join(import.meta.dirname, '../support/faults/leak.mjs')
    const seed = runSeed('soak with a leak')
    const { verdicts } = await soak({ minutes: LEAK_MINUTES, seed, rate: 200, preload })
    const grown = verdicts.filter(({ flat }) => !flat).map(({ name }) => name)
    expect(grown).toContain('open handles')
    expect(grown).toContain('anonymous memory')
  })
})
