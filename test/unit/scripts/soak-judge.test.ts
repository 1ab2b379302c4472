import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../../scripts/crash-loop/seeded-random.mjs'
import { judge, theilSen, type Sample } from '../../../scripts/soak/judge.mjs'

const SECS = 120
const MEBIBYTE = 2 ** 20

/**
 * Samples like those of a server: garbage collection, connections that open and close, files that grow with
 * the data.
 */
function series(change: (sample: Sample) => Partial<Sample> = () => ({}), secs = SECS): Sample[] {
  const random = seededRandom(11)
  return Array.from({ length: secs }, (_none, second) => {
    const warming = 60 * MEBIBYTE * Math.exp(-second / 10)
    const sample = {
      secs: second,
      memoryBytes: 200 * MEBIBYTE - warming + (second % 7) * 3 * MEBIBYTE + random() * 2 * MEBIBYTE,
      handles: 80 + Math.floor(random() * 12),
      threads: second < 5 ? 12 : 15,
      // A file grows in steps.
      fileBytes: Math.ceil((second * 1_000 * 600) / MEBIBYTE) * MEBIBYTE,
      logBytes: (second < 20 ? 16 : 32) * MEBIBYTE,
      records: second * 1_000,
    }
    return { ...sample, ...change(sample) }
  })
}

function growing(samples: readonly Sample[]): string[] {
  return judge(samples)
    .filter(({ flat }) => !flat)
    .map(({ name }) => name)
}

describe('the judge of a soak', () => {
  it('accepts values that only fluctuate, in two minutes and in an hour', () => {
    expect(growing(series())).toEqual([])
    expect(growing(series(undefined, 3_600))).toEqual([])
  })

  it('is robust against outliers', () => {
    const wild = series(({ secs, memoryBytes, handles }) =>
      secs % 29 === 0 ? { memoryBytes: memoryBytes * 4, handles: handles + 400 } : {},
    )
    expect(growing(wild)).toEqual([])
  })

  it('detects a memory leak despite fluctuation', () => {
    const leak = ({ secs, memoryBytes }: Sample) => ({ memoryBytes: memoryBytes + secs * 0.6 * MEBIBYTE })
    expect(growing(series(leak))).toEqual(['anonymous memory'])
  })

  it('detects in an hour a leak that is too slow for two minutes', () => {
    const leak = ({ secs, memoryBytes }: Sample) => ({ memoryBytes: memoryBytes + secs * 16 * 1_024 })
    expect(growing(series(leak))).toEqual([])
    expect(growing(series(leak, 3_600))).toEqual(['anonymous memory'])
  })

  it('detects leaks of handles and threads', () => {
    expect(growing(series(({ secs, handles }) => ({ handles: handles + Math.floor(secs / 8) })))).toEqual([
      'open handles',
    ])
    expect(growing(series(({ secs, threads }) => ({ threads: threads + Math.floor(secs / 20) })))).toEqual([
      'threads',
    ])
  })

  it('detects a file that grows faster than the data or not at all', () => {
    const faster = ({ secs, fileBytes }: Sample) => ({
      fileBytes: fileBytes + Math.max(0, secs - SECS / 2) ** 2 * 10 * 1_024,
    })
    expect(growing(series(faster))).toEqual(['file per record, late to early'])
    expect(growing(series(() => ({ fileBytes: 5 * MEBIBYTE })))).toEqual(['file per record, late to early'])
  })

  it('detects growing log files and growing recovery times', () => {
    const more = ({ secs, logBytes }: Sample) => ({ logBytes: logBytes + secs * MEBIBYTE })
    expect(growing(series(more))).toEqual(['log files'])
    const starts = (longer: number) =>
      Array.from({ length: 20 }, (_none, index) => ({
        secs: index * 6,
        tookSecs: 0.7 + index * longer,
        replayed: 40 + index * longer * 1_000,
      }))
    const growingBy = (longer: number) => judge(series(), starts(longer)).filter(({ flat }) => !flat)
    expect(growingBy(0.001)).toEqual([])
    expect(growingBy(0.1)).toMatchObject([{ name: 'start after a crash' }, { name: 'replayed by it' }])
  })

  it('compares the values at the end of each killed process', () => {
    const starts = Array.from({ length: 119 }, (_none, life) => ({
      secs: (life + 1) * 60 + 2,
      tookSecs: 1,
      replayed: 40,
    }))
    /** Handles and memory that grow in each process, and a part that stays in the next one. */
    const lives = (left: number) =>
      series(({ secs }) => {
        const [life, age] = [Math.floor((secs - 2) / 60), Math.max(0, secs - 2) % 60]
        return { handles: 40 + age + life * left, memoryBytes: (100 + age + life * left * 4) * MEBIBYTE }
      }, 7_200)
    const growingBy = (left: number) => judge(lives(left), starts).filter(({ flat }) => !flat)
    expect(growingBy(0)).toEqual([])
    expect(growingBy(0.2)).toMatchObject([{ name: 'anonymous memory' }, { name: 'open handles' }])
    const few = judge(lives(0).slice(0, 720), starts.slice(0, 11)).map(({ name }) => name)
    expect(few).toEqual([
      'log files',
      'file per record, late to early',
      'start after a crash',
      'replayed by it',
    ])
  })

  it('refuses to judge too few samples', () => {
    expect(() => judge(series(undefined, 20))).toThrow('Expected at least')
  })
})

describe('the slope of Theil and Sen', () => {
  it('is the median of the slopes of all pairs', () => {
    // Pairs: 1, 2, 3 from the first; 3, 4 from the second; 5 from the third.
    const points = [0, 1, 4, 9].map((y, x) => ({ x, y }))
    expect(theilSen(points)).toBe(3)
    expect(theilSen([{ x: 1, y: 1 }])).toBe(0)
  })
})
