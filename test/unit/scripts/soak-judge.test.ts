import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../../scripts/crash-loop/seeded-random.mjs'
import { judge, theilSen, type Sample } from '../../../scripts/soak/judge.mjs'

const SECS = 120
const MEBIBYTE = 2 ** 20

/** A series as a server gives it: a heap that fills and is emptied, streams that come and go, files that follow the data. */
function series(change: (sample: Sample) => Partial<Sample> = () => ({}), secs = SECS): Sample[] {
  const random = seededRandom(11)
  return Array.from({ length: secs }, (_none, second) => {
    const warming = 60 * MEBIBYTE * Math.exp(-second / 10)
    const sample = {
      secs: second,
      memoryBytes: 200 * MEBIBYTE - warming + (second % 7) * 3 * MEBIBYTE + random() * 2 * MEBIBYTE,
      handles: 80 + Math.floor(random() * 12),
      threads: second < 5 ? 12 : 15,
      // In steps, as a file grows.
      fileBytes: Math.ceil((second * 1_000 * 600) / MEBIBYTE) * MEBIBYTE,
      logBytes: (second < 20 ? 16 : 32) * MEBIBYTE,
      records: second * 1_000,
    }
    return { ...sample, ...change(sample) }
  })
}

function grown(samples: readonly Sample[]): string[] {
  return judge(samples)
    .filter(({ flat }) => !flat)
    .map(({ name }) => name)
}

describe('the judge of a soak', () => {
  it('takes for flat what only wavers, in two minutes and in an hour', () => {
    expect(grown(series())).toEqual([])
    expect(grown(series(undefined, 3_600))).toEqual([])
  })

  it('is not moved by a few wild samples', () => {
    const wild = series(({ secs, memoryBytes, handles }) =>
      secs % 29 === 0 ? { memoryBytes: memoryBytes * 4, handles: handles + 400 } : {},
    )
    expect(grown(wild)).toEqual([])
  })

  it('sees memory that leaks, however much it wavers', () => {
    const leak = ({ secs, memoryBytes }: Sample) => ({ memoryBytes: memoryBytes + secs * 0.6 * MEBIBYTE })
    expect(grown(series(leak))).toEqual(['anonymous memory'])
  })

  it('sees in an hour what is too slow to be seen in two minutes', () => {
    const leak = ({ secs, memoryBytes }: Sample) => ({ memoryBytes: memoryBytes + secs * 16 * 1_024 })
    expect(grown(series(leak))).toEqual([])
    expect(grown(series(leak, 3_600))).toEqual(['anonymous memory'])
  })

  it('sees handles that stay open and threads that stay', () => {
    expect(grown(series(({ secs, handles }) => ({ handles: handles + Math.floor(secs / 8) })))).toEqual([
      'open handles',
    ])
    expect(grown(series(({ secs, threads }) => ({ threads: threads + Math.floor(secs / 20) })))).toEqual([
      'threads',
    ])
  })

  it('sees a file that comes to grow faster than the data, or not to follow them at all', () => {
    const faster = ({ secs, fileBytes }: Sample) => ({
      fileBytes: fileBytes + Math.max(0, secs - SECS / 2) ** 2 * 10 * 1_024,
    })
    expect(grown(series(faster))).toEqual(['file per record, late to early'])
    expect(grown(series(() => ({ fileBytes: 5 * MEBIBYTE })))).toEqual(['file per record, late to early'])
  })

  it('sees log files that become more, and starts after crashes that take longer', () => {
    const more = ({ secs, logBytes }: Sample) => ({ logBytes: logBytes + secs * MEBIBYTE })
    expect(grown(series(more))).toEqual(['log files'])
    const starts = (longer: number) =>
      Array.from({ length: 20 }, (_none, index) => ({
        secs: index * 6,
        tookSecs: 0.7 + index * longer,
        replayed: 40 + index * longer * 1_000,
      }))
    const grownBy = (longer: number) => judge(series(), starts(longer)).filter(({ flat }) => !flat)
    expect(grownBy(0.001)).toEqual([])
    expect(grownBy(0.1)).toMatchObject([{ name: 'start after a crash' }, { name: 'replayed by it' }])
  })

  it('compares what each process had at its end, where it was killed', () => {
    const starts = Array.from({ length: 119 }, (_none, life) => ({
      secs: (life + 1) * 60 + 2,
      tookSecs: 1,
      replayed: 40,
    }))
    /** Handles and memory that fill in each life, and what of them stays from one life to the next. */
    const lives = (left: number) =>
      series(({ secs }) => {
        const [life, age] = [Math.floor((secs - 2) / 60), Math.max(0, secs - 2) % 60]
        return { handles: 40 + age + life * left, memoryBytes: (100 + age + life * left * 4) * MEBIBYTE }
      }, 7_200)
    const grownBy = (left: number) => judge(lives(left), starts).filter(({ flat }) => !flat)
    expect(grownBy(0)).toEqual([])
    expect(grownBy(0.2)).toMatchObject([{ name: 'anonymous memory' }, { name: 'open handles' }])
    const few = judge(lives(0).slice(0, 720), starts.slice(0, 11)).map(({ name }) => name)
    expect(few).toEqual([
      'log files',
      'file per record, late to early',
      'start after a crash',
      'replayed by it',
    ])
  })

  it('judges nothing by a handful of samples', () => {
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
