import { Type, type Static } from 'typebox'
import { documented } from './documented.js'

export const MetricFamily = Type.Object({
  name: Type.String(),
  help: Type.String(),
  type: Type.String({ description: 'counter, gauge, histogram or summary' }),
  samples: Type.Array(
    Type.Object({
      name: Type.String({
        description: 'The name of the metric; for a histogram, with _bucket, _sum or _count',
      }),
      labels: Type.Record(Type.String(), Type.String()),
      value: Type.Union([Type.Number(), Type.Null()], { description: 'Null if there is no number yet' }),
    }),
  ),
})
export type MetricFamily = Static<typeof MetricFamily>

/** Answer of GET /v1/metrics. */
export const MetricValues = Type.Object({ metrics: Type.Array(MetricFamily) })
export type MetricValues = Static<typeof MetricValues>
documented('MetricValues', MetricValues, {
  metrics: {
    metrics: [
      {
        name: 'strandfast_records_total',
        help: 'Records committed since the start',
        type: 'counter',
        samples: [
          { name: 'strandfast_records_total', labels: { shard: '0' }, value: 1_200 },
          { name: 'strandfast_records_total', labels: { shard: '1' }, value: 800 },
        ],
      },
    ],
  },
})
