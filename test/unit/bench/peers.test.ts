import { describe, expect, it } from 'vitest'
import { readPeersPlan } from '../../../bench/peers/options.mjs'
import { compareWithTargets, measureInRounds } from '../../../bench/peers/rounds.mjs'
import { peersTable } from '../../../bench/report.mjs'
import { percentile } from '../../../bench/statistics.mjs'

/** A contender that returns these values one after another, the first for the warm-up. */
function contender(name: string, values: (number | Error)[]) {
  let next = 0
  return {
    name,
    role: 'peer' as const,
    note: `of ${name}`,
    measure: async () => {
      const value = values[next++]
      if (typeof value !== 'number') throw value
      return { value, p50Ms: value / 10, p99Ms: value }
    },
  }
}

const plan = { ...readPeersPlan(['--generator', 'autocannon']), rounds: 3, seconds: 1 }

async function compare(...contenders: ReturnType<typeof contender>[]) {
  const lines: string[] = []
  const measured = await measureInRounds({ plan, report: (text: string) => lines.push(text) }, { contenders })
  return { ...measured, lines }
}

describe('measureInRounds', () => {
  it('returns the median of the ratios to the first contender per round, without the warm-up', async () => {
    const ours = contender('ours', [1, 100, 200, 50])
    const peer = contender('peer', [9_999, 200, 300, 300])
    const { results, faults } = await compare(ours, peer)
    expect(faults).toEqual([])
    expect(results).toEqual([
      {
        name: 'ours',
        role: 'peer',
        note: 'of ours',
        value: 100,
        ratio: 1,
        p50_ms: 10,
        p99_ms: 100,
        rounds: [100, 200, 50],
      },
      // The ratios are 2, 1.5 and 6; the medians would give 300 / 100.
      expect.objectContaining({ name: 'peer', value: 300, ratio: 2, rounds: [200, 300, 300] }),
    ])
  })

  it('reverses the order in every other round', async () => {
    const { lines } = await compare(contender('a', [1, 1, 1, 1]), contender('b', [2, 2, 2, 2]))
    expect(lines.map((line) => line.trim().at(-1)).join('')).toBe('abbaab')
  })

  it('skips a contender after a failure and continues with the others', async () => {
    const failing = contender('failing', [1, 5, new Error('7 rows are missing'), 5])
    const { results, faults } = await compare(contender('ours', [1, 1, 1, 1]), failing)
    expect(results.map((result) => (result as { name: string }).name)).toEqual(['ours'])
    expect(faults).toEqual([{ name: 'failing', detail: '7 rows are missing' }])
  })

  it('returns no ratio without the first contender', async () => {
    const { results } = await compare(contender('ours', [new Error('x')]), contender('peer', [1, 2, 3, 4]))
    expect(results).toEqual([expect.objectContaining({ name: 'peer', value: 3, ratio: null })])
  })

  it('measures a workload at least for its minimum duration', async () => {
    const seconds: number[] = []
    const measure = async (given: number) => ({ value: seconds.push(given) })
    const contenders = [{ name: 'a', role: 'peer' as const, note: '', measure }]
    await measureInRounds({ plan, report: () => {} }, { contenders, secondsMin: 5 })
    expect(seconds).toEqual([5, 5, 5, 5])
  })
})

describe('compareWithTargets', () => {
  const results = [
    { name: 'ours', rounds: [100, 200, 300] },
    { name: 'peer', rounds: [200, 200, 100] },
  ]

  it('returns the median ratio of ours to the peer and whether the target is met', () => {
    // The ratios are 0.5, 1 and 3; the medians give 1 as well, the best of each 1.5.
    const targets = [1, 1.01].map((ratio) => ({ ours: 'ours', peer: 'peer', ratio }))
    expect(compareWithTargets(targets, results)).toEqual([
      { ours: 'ours', peer: 'peer', ratio: 1, target: 1, met: true },
      { ours: 'ours', peer: 'peer', ratio: 1, target: 1.01, met: false },
    ])
  })

  it('skips a target whose peer was not measured', () => {
    expect(compareWithTargets([{ ours: 'ours', peer: 'absent', ratio: 1 }], results)).toEqual([])
  })
})

describe('readPeersPlan', () => {
  const read = (...args: string[]) => readPeersPlan(['--generator', 'autocannon', ...args])

  it('measures three rounds of three seconds by default, one of one second with --quick', () => {
    expect(read()).toMatchObject({ quick: false, rounds: 3, seconds: 3, only: [] })
    expect(read('--quick')).toMatchObject({ quick: true, rounds: 1, seconds: 1 })
    expect(read('--quick', '--rounds', '5', '--seconds', '12')).toMatchObject({ rounds: 5, seconds: 12 })
    expect(read('--product', '../old')).toMatchObject({ product: '../old', results: undefined })
    expect(read('--only', 'bulk', '--only', 'writes-64').only).toEqual(['bulk', 'writes-64'])
  })

  it('throws for unknown options', () => {
    expect(() => read('--only', 'reads')).toThrow('No such workload: reads')
    expect(() => read('--rounds', '0')).toThrow('Expected a number from 1 on after --rounds')
    expect(() => read('--seconds', '2s')).toThrow('Expected a number from 1 on after --seconds')
    expect(() => read('--fast')).toThrow('--fast')
  })
})

describe('percentile', () => {
  it('returns the value below which the share lies', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index)
    expect([percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1)]).toEqual([50, 99, 100])
    expect(percentile([7], 0.01)).toBe(7)
    expect(() => percentile([], 0.5)).toThrow('Expected at least one number')
  })
})

describe('peersTable', () => {
  it('shows rates, ratios and latencies in columns', () => {
    const contenders = [
      { name: 'ours', value: 15_000, ratio: 1, p50_ms: 4.2, p99_ms: 9 },
      { name: 'peer', value: 900, ratio: null, p50_ms: null, p99_ms: null },
    ]
    const targets = [{ ours: 'ours', peer: 'peer', ratio: 16.7, target: 20, met: false }]
    const lines = peersTable({ title: 'Writes', unit: 'records/s', contenders, targets }).split('\n')
    expect(lines[0]).toMatch(/^Writes +records\/s +of ours +p50 +p99$/)
    expect(lines[1]).toMatch(/^ours +15,000 +1\.00 +4\.2 ms +9 ms$/)
    expect(lines[2]).toMatch(/^peer +900$/)
    expect(lines[3]).toBe('ours by peer: 16.70, target 20, MISSED')
  })
})
