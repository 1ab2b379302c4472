import { countText, bytesText } from '../parts/format.js'
import {
  metricIncrease,
  counterIncrease,
  type HistogramName,
  type MetricName,
  perSec,
  type MetricsReading,
} from '../parts/metrics.js'

export interface Figure {
  name: string
  text: (value: number) => string
  /** The values by label; empty if the figure is not known. A single line has the label ''. */
  of: (now: MetricsReading, before: MetricsReading) => ReadonlyMap<string, number>
}

const oneDigit = (value: number): string => countText(Math.round(value * 10) / 10)
const msText = (value: number): string => `${oneDigit(value)} ms`
const secsText = (value: number): string => `${oneDigit(value)} s`

export const figures: readonly Figure[] = [
  {
    name: 'Records per second',
    text: oneDigit,
    of: (now, before) => one(perSec('strandfast_records_total', now, before)),
  },
  {
    name: 'Records per commit',
    text: oneDigit,
    of: (now, before) => one(ratio('strandfast_records_total', now, before)),
  },
  {
    name: 'Commit latency',
    text: msText,
    of: (now, before) =>
      inMs([
        ['mean', ratio('strandfast_commit_seconds_total', now, before)],
        ['p99', percentile99('strandfast_append_seconds', now, before)],
      ]),
  },
  {
    name: 'Request latency (p99)',
    text: msText,
    of: (now, before) => inMs([['', percentile99('strandfast_http_request_seconds', now, before)]]),
  },
  {
    name: 'Queue depth',
    text: countText,
    of: (now) => now.by('strandfast_shard_queue_depth', 'shard', (shard) => `shard ${shard}`),
  },
  {
    name: 'Event loop lag (p99)',
    text: msText,
    of: (now) => {
      const secs = now.total('nodejs_eventloop_lag_p99_seconds')
      return one(secs === undefined ? undefined : secs * 1_000)
    },
  },
  { name: 'Requests per second, by status', text: oneDigit, of: (now, before) => ratesBy(now, before) },
  { name: 'Free disk space', text: bytesText, of: (now) => one(now.total('strandfast_disk_free_bytes')) },
  { name: 'PostgreSQL lag', text: secsText, of: (now) => one(now.total('strandfast_sink_lag_seconds')) },
  {
    name: 'Refused lines per second',
    text: oneDigit,
    of: (now, before) => one(perSec('strandfast_ingest_refused_lines_total', now, before)),
  },
]

/** Converts seconds by label to milliseconds, and drops unknown values. */
function inMs(secs: readonly (readonly [label: string, secs: number | undefined])[]): Map<string, number> {
  return new Map(
    secs.flatMap(([label, value]) => (value === undefined ? [] : [[label, value * 1_000] as const])),
  )
}

const SHARE_BELOW = 0.99

/**
 * The 99th percentile of a histogram since the previous reading. It interpolates linearly within a bucket
 * like Prometheus, and returns the highest finite bound for values above it.
 * @returns seconds; undefined if there were no values
 */
export function percentile99(
  name: HistogramName,
  now: MetricsReading,
  before: MetricsReading,
): number | undefined {
  const earlier = before.buckets(name)
  const bounds = [...now.buckets(name)]
    .map(([bound, count]) => ({ bound, count: counterIncrease(earlier.get(bound) ?? 0, count) }))
    .sort((a, b) => a.bound - b.bound)
  const all = bounds.at(-1)?.count ?? 0
  if (all === 0) return undefined
  const rank = all * SHARE_BELOW
  const at = bounds.findIndex(({ count }) => count >= rank)
  const [low, high] = [bounds[at - 1] ?? { bound: 0, count: 0 }, bounds[at]]
  if (high === undefined || high.bound === Infinity) return low.bound
  return low.bound + ((rank - low.count) / (high.count - low.count)) * (high.bound - low.bound)
}

function one(value: number | undefined): ReadonlyMap<string, number> {
  return value === undefined ? new Map() : new Map([['', value]])
}

/** The increase of a metric per commit; undefined if there were no commits. */
function ratio(name: MetricName, now: MetricsReading, before: MetricsReading): number | undefined {
  const commits = metricIncrease('strandfast_commits_total', now, before) ?? 0
  const amount = metricIncrease(name, now, before)
  return amount === undefined || commits === 0 ? undefined : amount / commits
}

function ratesBy(now: MetricsReading, before: MetricsReading): ReadonlyMap<string, number> {
  const sums = (reading: MetricsReading) => reading.by('strandfast_http_requests_total', 'status', classOf)
  const first = sums(before)
  const secs = (now.atMs - before.atMs) / 1_000
  return new Map(
    [...sums(now)].sort().map(([name, last]) => [name, counterIncrease(first.get(name) ?? 0, last) / secs]),
  )
}

/** The class of a status. The server counts requests that the client aborted as status 0. */
function classOf(status: string): string {
  return status === '0' ? 'aborted' : `${status.slice(0, 1)}xx`
}
