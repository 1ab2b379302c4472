import { describe, expect, it } from 'vitest'
import { barChart } from '../../../scripts/performance/charts.mjs'
import { performanceDocuments } from '../../../scripts/performance/documents.mjs'
import { newestParts } from '../../../scripts/performance/runs.mjs'

const page = `# Page

<!-- made from runs: peers -->
old
<!-- end: peers -->

by hand

<!-- made from runs: growth -->
<!-- end: growth -->

<!-- made from runs: ceilings -->
<!-- end: ceilings -->
`

const readme = `# Name

<!-- made from runs: peers -->
<!-- end: peers -->
`

const machine = { at: '2026-03-01T12:00:00.000Z', commit: 'abc', node: 'v20.19.0', cpu: 'X', cores: 2 }
const contender = (name: string, role: string, figures: { value: number; [name: string]: unknown }) => ({
  name,
  role,
  ...figures,
  rounds: [figures.value],
})
const peersRun = {
  ...machine,
  generator: 'wrk',
  quick: false,
  rounds: 3,
  seconds: 3,
  versions: { Redis: '7.0' },
  skipped: [{ name: 'PostgreSQL', detail: 'no pgbench' }],
  faults: [],
  workloads: [
    {
      id: 'writes-64',
      title: 'Single writes',
      unit: 'records/s',
      contenders: [
        contender('Strandfast', 'ours', { note: 'signed', value: 15_000, ratio: 1, p50_ms: 4, p99_ms: 9 }),
        contender('Redis', 'peer', { note: 'unsigned', value: 81_000, ratio: 5.4, p50_ms: 1, p99_ms: null }),
        contender('By hand', 'same', { note: 'signed', value: 5_000, ratio: 0.33, p50_ms: 9, p99_ms: 30 }),
      ],
      targets: [
        { ours: 'Strandfast', peer: 'Redis', ratio: 0.19, target: 1, met: false },
        { ours: 'Strandfast', peer: 'By hand', ratio: 3, target: 2, met: true },
      ],
    },
  ],
}
const ceilingsRun = {
  ...machine,
  generator: 'wrk',
  quick: false,
  scenarios: [
    {
      name: 'gets',
      value: 40_000,
      unit: 'reads/s',
      ceiling: 100_000,
      ratio: 0.4,
      target: { ratio: 0.5 },
      met: false,
    },
    {
      name: 'start',
      value: 700,
      unit: 'ms',
      ceiling: null,
      ratio: null,
      target: { below: 2_000 },
      met: true,
    },
  ],
}

const growthRun = {
  ...machine,
  generator: 'wrk',
  quick: false,
  scenarios: [
    {
      scenario: 'growth',
      name: 'a proof',
      value: 12,
      unit: 'ms',
      ceiling: null,
      ratio: null,
      target: { below: 8 },
      met: false,
      sizes: [100_000, 1_000_000],
      curve: [4, 12],
    },
  ],
}

const documents = (texts: { page?: string; peers?: string; results?: string }) =>
  new Map(performanceDocuments({ page, readme, peers: '', results: '', ...texts }))

describe('the page on performance', () => {
  it('shows tables and charts of the recorded runs between its markers and keeps the rest', () => {
    const made = documents({ peers: JSON.stringify(peersRun), results: JSON.stringify(ceilingsRun) })
    expect([...made.keys()]).toEqual([
      'docs/PERFORMANCE.md',
      'README.md',
      'docs/performance/writes-64.svg',
      'docs/performance/ceilings.svg',
    ])
    const text = made.get('docs/PERFORMANCE.md') ?? ''
    expect(text).toContain('Recorded 2026-03-01 on 2 cores (X), Node 20.19.0, load by wrk, commit abc')
    expect(text.replaceAll('\n', ' ')).toContain('Redis 7.0. PostgreSQL was left out (no pgbench).')
    expect(text).toContain('![Single writes, records/s](performance/writes-64.svg)')
    expect(text).toMatch(/^\| \*\*Strandfast\*\* +\| 15,000 +\| 1\.00 +\| 4 ms +\| 9 ms +\|$/m)
    expect(text).toMatch(/^\| Redis +\| 81,000 +\| 5\.40 +\| 1 ms +\| +\|$/m)
    expect(text).toContain('- Redis: unsigned.')
    expect(text).toContain('**Strandfast** divided by Redis: 0.19, target 1: **missed**.')
    expect(text).toContain(
      '\n- **gets**: 40,000 reads/s; 0.4 of the ceiling, 100,000; target: ratio 0.5, **missed**.\n',
    )
    expect(text).toContain('\n- **start**: 700 ms; target: below 2,000, met.\n')
    expect(text).toContain('\nby hand\n')
    expect(text).not.toContain('old')
  })

  it('shows the curves of a growing store in a table and a chart, not among the ceilings', () => {
    const made = documents({ results: JSON.stringify(growthRun) })
    const text = made.get('docs/PERFORMANCE.md') ?? ''
    expect(text).toMatch(/^\| ms +\| 100,000 records +\| 1,000,000 records +\| bound +\|$/m)
    expect(text).toMatch(/^\| a proof +\| 4 +\| 12 +\| 8, \*\*missed\*\* +\|$/m)
    expect(text).toContain('![1,000,000 records against 100,000](performance/growth.svg)')
    const [, plot] = [...made].find(([path]) => path.endsWith('growth.svg')) ?? []
    expect(plot).toContain('>3</text>')
    expect(text).not.toContain('- **a proof**')
  })

  it('shows how many times as fast it is in the README, the same promise first', () => {
    const [writes] = peersRun.workloads
    const bulk = { ...writes, id: 'bulk', title: 'Bulk writes', contenders: writes?.contenders.slice(0, 2) }
    const later = { ...peersRun, at: '2026-03-02T12:00:00.000Z', workloads: [bulk] }
    const made = documents({ peers: [peersRun, later].map((run) => JSON.stringify(run)).join('\n') })
    const text = made.get('README.md') ?? ''
    expect(text).toContain('Recorded on 2026-03-01 and 2026-03-02; 2 cores (X), Node 20.19.0, load by wrk.\n')
    expect(text).toMatch(/^\| +\| Single writes +\| Bulk writes +\|$/m)
    expect(text).toMatch(/^\| By hand +\| 3 +\| +\|\n\| Redis +\| 0\.185 +\| 0\.185 +\|$/m)
  })

  it('names the run of each figure if there are several runs', () => {
    const again = { ...ceilingsRun, commit: 'def', scenarios: [{ ...ceilingsRun.scenarios[1], value: 650 }] }
    const results = [ceilingsRun, again].map((run) => JSON.stringify(run)).join('\n')
    const text = documents({ results }).get('docs/PERFORMANCE.md') ?? ''
    expect(text).toContain('Recorded on 2 cores (X), Node 20.19.0, load by wrk.\n')
    expect(text).toMatch(/^- \*\*gets\*\*: .* \(2026-03-01, abc\)\.$/m)
    expect(text).toMatch(/^- \*\*start\*\*: 650 ms; .* \(2026-03-01, def\)\.$/m)
    expect(text).not.toContain('700 ms')
  })

  it('names the run of each workload if there are several runs', () => {
    const [writes] = peersRun.workloads
    const other = {
      ...peersRun,
      commit: 'def',
      workloads: [{ ...writes, id: 'bulk', title: 'Many in parallel' }],
    }
    const peers = [peersRun, other].map((run) => JSON.stringify(run)).join('\n')
    const text = documents({ peers }).get('docs/PERFORMANCE.md') ?? ''
    expect(text).toMatch(/^- Recorded .*, commit abc, medians.* Its figures: Single writes\.$/m)
    expect(text).toMatch(/^- Recorded .*, commit def, medians.* Its figures: Many in parallel\.$/m)
  })

  it('does not change when it is generated again', () => {
    const peers = JSON.stringify(peersRun)
    const once = documents({ peers }).get('docs/PERFORMANCE.md') ?? ''
    expect(documents({ page: once, peers }).get('docs/PERFORMANCE.md')).toBe(once)
  })

  it('says that no run is recorded yet', () => {
    expect(documents({}).get('docs/PERFORMANCE.md')).toContain('No run is recorded yet.')
  })

  it('throws if a marker is missing', () => {
    expect(() => documents({ page: '# Page\n' })).toThrow('lacks the markers of peers')
  })
})

describe('newestParts', () => {
  interface Part {
    name: string
    group: string
  }
  interface Run {
    at: string
    quick: boolean
    parts: Part[]
  }
  const run = (at: string, parts: string[], quick = false) =>
    JSON.stringify({ at, quick, parts: parts.map((name) => ({ name, group: name[0] })) })
  const newest = (...lines: string[]) =>
    newestParts<Run, Part>(lines.join('\n'), {
      partsOf: ({ parts }) => parts,
      groupOf: ({ group }) => group,
      nameOf: ({ name }) => name,
    }).map(({ run: { at }, part: { name } }) => `${name} of ${at}`)

  it('takes each part from the newest full run that has it', () => {
    const lines = [run('1', ['a', 'b', 'c']), run('2', ['b']), run('3', ['a', 'b'], true)]
    expect(newest(...lines)).toEqual(['a of 1', 'b of 2', 'c of 1'])
  })

  it('skips figures that the newest run of a scenario does not have', () => {
    expect(newest(run('1', ['a1', 'a2', 'b1']), run('2', ['a1', 'a3']))).toEqual([
      'a1 of 2',
      'b1 of 1',
      'a3 of 2',
    ])
  })

  it('is empty without a run', () => {
    expect(newest()).toEqual([])
  })
})

describe('barChart', () => {
  const bars = [
    { name: 'first <one>', value: 10, label: 'ten', role: 'ours' as const },
    { name: 'second', value: 5, label: 'five', role: 'peer' as const, target: 7 },
  ]
  const svg = barChart({ title: 'Rates & ratios', subtitle: 'a second', bars })

  it('draws bars in proportion to their values, each with its name and label', () => {
    const widthOf = (colour: string) => {
      const path = new RegExp(`<path d="M[\\d.]+ [\\d.]+l([\\d.]+) 0[^"]*"[^>]* fill="${colour}"`).exec(svg)
      return Number(path?.[1])
    }
    expect(widthOf('#0969da') / widthOf('#8c959f')).toBeCloseTo(2, 1)
    for (const text of ['first &lt;one&gt;', 'second', 'ten', 'five', 'a second'])
      expect(svg.split(`>${text}<`)).toHaveLength(2)
  })

  it('is self-contained, with a title, a background, dark colours and no script', () => {
    expect(svg).toMatch(/^<svg [^>]*role="img">\n<title>Rates &amp; ratios<\/title>/)
    expect(svg).toContain('prefers-color-scheme:dark')
    expect(svg).toMatch(/<rect width="820"[^>]* fill="#ffffff"/)
    expect(svg).not.toMatch(/<script|href="http|:hover|\son\w+=/)
  })

  it('is deterministic', () => {
    expect(barChart({ title: 'Rates & ratios', subtitle: 'a second', bars })).toBe(svg)
  })
})
