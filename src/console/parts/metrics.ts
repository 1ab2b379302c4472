import type { MetricValues } from '../../client/index.js'

type Sample = MetricValues['metrics'][number]['samples'][number]

/** The metrics that the console reads (docs/MONITORING.md). */
export const metricNames = [
  'strandfast_records_total',
  'strandfast_commits_total',
  'strandfast_commit_seconds_total',
  'strandfast_append_seconds',
  'strandfast_shard_queue_depth',
  'strandfast_shards_serving',
  'strandfast_http_requests_total',
  'strandfast_http_request_seconds',
  'strandfast_streams_open',
  'strandfast_disk_free_bytes',
  'strandfast_backup_completed_timestamp_seconds',
  'strandfast_log_complete_timestamp_seconds',
  'strandfast_sink_lag_records',
  'strandfast_sink_lag_seconds',
  'strandfast_ingest_refused_lines_total',
  // Reading this metric updates the next one.
  'nodejs_eventloop_lag_seconds',
  'nodejs_eventloop_lag_p99_seconds',
] as const

export type MetricName = (typeof metricNames)[number]

export type HistogramName = Extract<
  MetricName,
  'strandfast_append_seconds' | 'strandfast_http_request_seconds'
>

/** A reading of the server's metrics at one time. */
export class MetricsReading {
  readonly atMs: number
  readonly #samples: ReadonlyMap<string, readonly Sample[]>

  constructor({ metrics }: MetricValues, atMs: number) {
    this.atMs = atMs
    this.#samples = new Map(metrics.map(({ name, samples }) => [name, samples]))
  }

  /** The sum over all labels; undefined if the server does not have this metric. */
  total(name: MetricName): number | undefined {
    const samples = this.#samples.get(name)
    return samples?.reduce((sum, { value }) => sum + (value ?? 0), 0)
  }

  /** The cumulative counts of a histogram by upper bound, summed over all labels. */
  buckets(name: HistogramName): Map<number, number> {
    const counts = new Map<number, number>()
    for (const { name: part, labels, value } of this.#samples.get(name) ?? []) {
      if (!part.endsWith('_bucket')) continue
      const bound = labels['le'] === '+Inf' ? Infinity : Number(labels['le'])
      counts.set(bound, (counts.get(bound) ?? 0) + (value ?? 0))
    }
    return counts
  }

  /** The sums grouped by the result of `groupOf` for a label. */
  by(name: MetricName, label: string, groupOf = (text: string) => text): Map<string, number> {
    const sums = new Map<string, number>()
    for (const { labels, value } of this.#samples.get(name) ?? []) {
      const group = groupOf(labels[label] ?? '')
      sums.set(group, (sums.get(group) ?? 0) + (value ?? 0))
    }
    return sums
  }
}

/** The increase of a counter. A lower value means that the counter was reset. */
export function counterIncrease(before: number, now: number): number {
  return now >= before ? now - before : now
}

/** The increase of a counter per second; undefined if the server does not have it. */
export function perSec(name: MetricName, now: MetricsReading, before: MetricsReading): number | undefined {
  const count = metricIncrease(name, now, before)
  return count === undefined ? undefined : (count * 1_000) / (now.atMs - before.atMs)
}

/** The increase of a counter between two readings; undefined if the server does not have it. */
export function metricIncrease(
  name: MetricName,
  now: MetricsReading,
  before: MetricsReading,
): number | undefined {
  const [last, first] = [now.total(name), before.total(name)]
  return last === undefined || first === undefined ? undefined : counterIncrease(first, last)
}
