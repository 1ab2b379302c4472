import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { soak } from '../../scripts/soak/run.mjs'
import { extent } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'

// `npm run soak` goes on for an hour, or as long as one likes.
const secs = extent({ short: 24, ci: 120, full: 120 })
/** Records before the load. Without them, and in a short time, a heap that fills and one that leaks look the same. */
const filled = extent({ short: 0, ci: 100_000, full: 100_000 })
const judgesMemory = filled > 0

describe('a server under a steady load', () => {
  it(
    'keeps its memory, its handles, its threads and the size of its files',
    { timeout: 300_000 },
    async () => {
      const lines: string[] = []
      const seed = runSeed('soak')
      const report = (line: string) => lines.push(line)
      const { verdicts, faults, records } = await soak({
        minutes: secs / 60,
        seed,
        rate: 500,
        filled,
        report,
      })
      expect(faults).toEqual([])
      const grown = verdicts.filter(
        ({ name, flat }) => !flat && (judgesMemory || name !== 'anonymous memory'),
      )
      expect(grown, lines.join('\n')).toEqual([])
      expect(records).toBeGreaterThan(secs * 20)
    },
  )

  it(
    'has all that it answered, and replays no more, however often it is killed',
    { timeout: 300_000 },
    async () => {
      const lines: string[] = []
      const { verdicts, faults, starts } = await soak({
        minutes: secs / 180,
        seed: runSeed('soak with crashes'),
        rate: 200,
        filled: 0,
        crashEverySecs: extent({ short: 2, ci: 5, full: 5 }),
        report: (line: string) => lines.push(line),
      })
      expect(faults).toEqual([])
      expect(starts.length).toBeGreaterThan(2)
      // How long a start takes is how busy the machine is.
      const grown = verdicts.filter(({ name, flat }) => !flat && name !== 'start after a crash')
      expect(grown, lines.join('\n')).toEqual([])
    },
  )

  it('is found out where it leaks', { timeout: 300_000 }, async () => {
    const preload = join(import.meta.dirname, '../support/faults/leak.mjs')
    const minutes = extent({ short: 12, ci: 60, full: 60 }) / 60
    const { verdicts } = await soak({
      minutes,
      seed: runSeed('soak with a leak'),
      rate: 200,
      filled: 0,
      preload,
    })
    const grown = verdicts.filter(({ flat }) => !flat).map(({ name }) => name)
    expect(grown).toContain('open handles')
    if (judgesMemory) expect(grown).toContain('anonymous memory')
  })
})
