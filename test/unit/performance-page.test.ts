import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { barChart } from '../../scripts/performance/charts.mjs'
import { performanceDocuments, recordedPerformanceDocuments } from '../../scripts/performance/documents.mjs'
import { newestWholeRun } from '../../scripts/performance/runs.mjs'

const page = `# Page

<!-- made from runs: peers -->
old
<!-- end: peers -->

by hand

<!-- made from runs: ceilings -->
<!-- end: ceilings -->
`

const machine = { at: '2026-03-01T12:00:00.000Z', commit: 'abc', node: 'v20.19.0', cpu: 'X', cores: 2 }
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
        { name: 'Strandfast', role: 'ours', note: 'signed', value: 15_000, ratio: 1, p50_ms: 4, p99_ms: 9 },
        { name: 'Redis', role: 'peer', note: 'unsigned', value: 81_000, ratio: 5.4, p50_ms: 1, p99_ms: null },
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

const documents = (texts: { page?: string; peers?: string; results?: string }) =>
  new Map(performanceDocuments({ page, peers: '', results: '', ...texts }))

describe('the page on performance', () => {
  it('has tables and plots of the recorded runs between its marks, and the rest as it was', () => {
    const made = documents({ peers: JSON.stringify(peersRun), results: JSON.stringify(ceilingsRun) })
    expect([...made.keys()]).toEqual([
      'docs/PERFORMANCE.md',
      'docs/performance/writes-64.svg',
      'docs/performance/ceilings.svg',
    ])
    const text = made.get('docs/PERFORMANCE.md') ?? ''
    expect(text).toContain('Recorded 2026-03-01 on 2 cores (X), Node 20.19.0, load by wrk, commit abc')
    expect(text).toContain('Redis 7.0. PostgreSQL was left out (no pgbench).')
    expect(text).toContain('![Single writes, records/s](performance/writes-64.svg)')
    expect(text).toMatch(/^\| \*\*Strandfast\*\* +\| 15,000 +\| 1\.00 +\| 4 ms +\| 9 ms +\|$/m)
    expect(text).toMatch(/^\| Redis +\| 81,000 +\| 5\.40 +\| 1 ms +\| +\|$/m)
    expect(text).toContain('- Redis: unsigned.')
    expect(text).toMatch(
      /^\| gets +\| 40,000 reads\/s +\| 100,000 +\| 0\.4 +\| ratio 0\.5 +\| \*\*missed\*\* \|$/m,
    )
    expect(text).toMatch(/^\| start +\| 700 ms +\| +\| +\| below 2,000 +\| met +\|$/m)
    expect(text).toContain('\nby hand\n')
    expect(text).not.toContain('old')
  })

  it('is the same when it is made again from itself', () => {
    const peers = JSON.stringify(peersRun)
    const once = documents({ peers }).get('docs/PERFORMANCE.md') ?? ''
    expect(documents({ page: once, peers }).get('docs/PERFORMANCE.md')).toBe(once)
  })

  it('says so while nothing is recorded', () => {
    expect(documents({}).get('docs/PERFORMANCE.md')).toContain('No run is recorded yet.')
  })

  it('throws when a mark is not there', () => {
    expect(() => documents({ page: '# Page\n' })).toThrow('lacks the marks of peers')
  })

  it('stands in the repository as the recorded runs make it', () => {
    const made = recordedPerformanceDocuments()
    expect(made.map(([path]: [string, string]) => path)).toContain('docs/PERFORMANCE.md')
    for (const [path, text] of made)
      expect(readFileSync(path, 'utf8'), `${path}: npm run generate`).toBe(text)
  })
})

describe('newestWholeRun', () => {
  interface Run {
    at: string
    parts: number
    quick: boolean
  }
  const run = (at: string, parts: number, quick = false) => JSON.stringify({ at, parts, quick })
  const partsOf = ({ parts }: Run) => Array.from({ length: parts })
  const newest = (...lines: string[]) => newestWholeRun<Run>(lines.join('\n'), partsOf)?.at

  it('takes the newest that was not quick and leaves nothing out', () => {
    expect(newest(run('a', 3), run('b', 3), run('c', 1), run('d', 3, true))).toBe('b')
    expect(newest(run('a', 2), run('b', 3))).toBe('b')
    expect(newest(run('a', 0), run('b', 2, true))).toBeUndefined()
  })
})

describe('barChart', () => {
  const bars = [
    { name: 'first <one>', value: 10, label: 'ten', role: 'ours' as const },
    { name: 'second', value: 5, label: 'five', role: 'peer' as const, target: 7 },
  ]
  const svg = barChart({ title: 'Rates & ratios', subtitle: 'a second', bars })

  it('draws bars as long as their values, with names and labels, each once', () => {
    const widthOf = (colour: string) => {
      const path = new RegExp(`<path d="M[\\d.]+ [\\d.]+l([\\d.]+) 0[^"]*"[^>]* fill="${colour}"`).exec(svg)
      return Number(path?.[1])
    }
    expect(widthOf('#0969da') / widthOf('#8c959f')).toBeCloseTo(2, 1)
    for (const text of ['first &lt;one&gt;', 'second', 'ten', 'five', 'a second'])
      expect(svg.split(`>${text}<`)).toHaveLength(2)
  })

  it('stands alone: a name, a background, colours for dark pages, and nothing that runs', () => {
    expect(svg).toMatch(/^<svg [^>]*role="img">\n<title>Rates &amp; ratios<\/title>/)
    expect(svg).toContain('prefers-color-scheme:dark')
    expect(svg).toMatch(/<rect width="820"[^>]* fill="#ffffff"/)
    expect(svg).not.toMatch(/<script|href="http|:hover|\son\w+=/)
  })

  it('is the same each time', () => {
    expect(barChart({ title: 'Rates & ratios', subtitle: 'a second', bars })).toBe(svg)
  })
})
