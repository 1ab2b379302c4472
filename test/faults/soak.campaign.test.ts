import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { soak } from '../../scripts/soak/run.mjs'
import { count } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'

/** How long the loads of this file take together; `npm run campaign -- soak --minutes N` says it. */
const minutes = Number(process.env['STRANDFAST_MINUTES'] ?? 60)
/** A heap that fills and one that leaks look the same for a shorter time. */
const LEAK_MINUTES = 1

describe('a server under a steady load', { timeout: (minutes + 10) * 60_000 }, () => {
  it('keeps its memory, its handles, its threads and the size of its files', async () => {
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

  it('has all that it answered, and replays no more, however often it is killed', async () => {
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
    // How long a start takes is how busy the machine is.
    const grown = verdicts.filter(({ name, flat }) => !flat && name !== 'start after a crash')
    expect(grown, lines.join('\n')).toEqual([])
    count({ soakKills: starts.length })
  })

  it('is found out where it leaks', async () => {
    const preload = join(import.meta.dirname, '../support/faults/leak.mjs')
    const seed = runSeed('soak with a leak')
    const { verdicts } = await soak({ minutes: LEAK_MINUTES, seed, rate: 200, preload })
    const grown = verdicts.filter(({ flat }) => !flat).map(({ name }) => name)
    expect(grown).toContain('open handles')
    expect(grown).toContain('anonymous memory')
  })
})
