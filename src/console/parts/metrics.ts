import type { MetricValues, ServiceClient } from '../../client/index.js'
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { explain } from './explain.js'

type Sample = MetricValues['metrics'][number]['samples'][number]

/** The metrics that the console reads (docs/MONITORING.md). */
const metricNames = [
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

/** The interval between readings. */
export const READ_INTERVAL_MS = 2_000
/** How long readings are retained. */
export const RETENTION_MS = 300_000

/**
 * Reads a server's metrics every two seconds while a screen shows them. Readings are in order, oldest first.
 */
class MetricsWatch {
  readonly readings = signal<readonly MetricsReading[]>([])
  readonly problem = signal<string | undefined>(undefined)
  readonly #service: ServiceClient
  #reading: AbortController | undefined
  #users = 0

  constructor(service: ServiceClient) {
    this.#service = service
  }

  /** Starts reading while the page is visible. @returns a function that stops it */
  use(): () => void {
    this.#users += 1
    if (this.#users === 1) this.#begin()
    return () => {
      this.#users -= 1
      if (this.#users === 0) this.#end()
    }
  }

  #begin(): void {
    document.addEventListener('visibilitychange', this.#onVisibility)
    this.#onVisibility()
  }

  #end(): void {
    document.removeEventListener('visibilitychange', this.#onVisibility)
    this.#reading?.abort()
    this.#reading = undefined
  }

  readonly #onVisibility = (): void => {
    this.#reading?.abort()
    this.#reading = undefined
    if (document.visibilityState === 'hidden') return
    const { signal } = (this.#reading = new AbortController())
    void this.#read(signal)
  }

  async #read(signal: AbortSignal): Promise<void> {
    try {
      const answer = await this.#service.metrics({ names: metricNames, signal })
      if (signal.aborted) return
      const nowMs = Date.now()
      const recent = this.readings.value.filter(({ atMs }) => atMs > nowMs - RETENTION_MS && atMs < nowMs)
      this.readings.value = [...recent, new MetricsReading(answer, nowMs)]
      this.problem.value = undefined
    } catch (error) {
      if (signal.aborted) return
      this.problem.value = explain(error)
    }
    const timer = setTimeout(() => void this.#read(signal), READ_INTERVAL_MS)
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }
}

const watches = new WeakMap<ServiceClient, MetricsWatch>()

/** The readings of a server, shared by all screens. */
export function useMetrics(service: ServiceClient): MetricsWatch {
  const watch = watches.get(service) ?? new MetricsWatch(service)
  watches.set(service, watch)
  useEffect(() => watch.use(), [watch])
  return watch
}
