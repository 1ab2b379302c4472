import { expect, it } from 'vitest'
import { percentile99 } from '../../../src/console/health/figures.js'
import { MetricsReading } from '../../../src/console/parts/metrics.js'

/** A reading of a histogram with the buckets 1 ms, 10 ms and infinity, for each shard. */
function reading(atMs: number, ...shards: [number, number, number][]): MetricsReading {
  const name = 'strandfast_append_seconds'
  const samples = shards.flatMap((counts, shard) =>
    ['0.001', '0.01', '+Inf'].map((le, bucket) => ({
      name: `${name}_bucket`,
      labels: { le, shard: String(shard) },
      value: counts[bucket] ?? 0,
    })),
  )
  const sum = { name: `${name}_sum`, labels: { shard: '0' }, value: 99 }
  return new MetricsReading(
    { metrics: [{ name, help: '', type: 'histogram', samples: [...samples, sum] }] },
    atMs,
  )
}

const between = (before: MetricsReading, now: MetricsReading) =>
  percentile99('strandfast_append_seconds', now, before)

it('computes the 99th percentile since the last reading, over all shards', () => {
  const before = reading(0, [50, 90, 90], [0, 0, 0])
  expect(between(before, reading(2, [130, 190, 190], [0, 0, 0]))).toBeCloseTo(0.001 + (19 / 20) * 0.009)
  expect(between(before, reading(2, [100, 140, 140], [50, 50, 50]))).toBeCloseTo(0.00099)
  // Above the highest finite bound, that bound is the result.
  expect(between(before, reading(2, [50, 90, 290], [0, 0, 0]))).toBe(0.01)
})

it('returns undefined without values, and handles the reset of a counter', () => {
  const before = reading(0, [50, 90, 90])
  expect(between(before, before)).toBeUndefined()
  expect(between(before, reading(2))).toBeUndefined()
  expect(between(before, reading(2, [10, 10, 10]))).toBeCloseTo(0.00099)
})
