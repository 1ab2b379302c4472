import { countText, bytesText } from '../parts/format.js'
import {
  grown,
  grownBy,
  type HistogramName,
  type MetricName,
  perSec,
  type MetricsReading,
} from '../parts/metrics.js'

/** Something that is plotted: one line, or one for each label. */
export interface Figure {
  name: string
  text: (value: number) => string
  /** The values of a moment by their labels; empty where nothing is known. */
  of: (now: MetricsReading, before: MetricsReading) => ReadonlyMap<string, number>
}

const oneDigit = (value: number): string => countText(Math.round(value * 10) / 10)
const msText = (value: number): string => `${oneDigit(value)} ms`
const secsText = (value: number): string => `${oneDigit(value)} s`

/** What #/health shows. */
export const figures: readonly Figure[] = [
  {
    name: 'Records a second',
    text: oneDigit,
    of: (now, before) => one(perSec('strandfast_records_total', now, before)),
  },
  {
    name: 'Records a commit',
    text: oneDigit,
    of: (now, before) => one(ratio('strandfast_records_total', now, before)),
  },
  {
    name: 'Time of a commit',
    text: msText,
    of: (now, before) => {
      const mean = ratio('strandfast_commit_seconds_total', now, before)
      return inMs([
        ['mean', mean],
        ['99 %', slowest('strandfast_append_seconds', now, before)],
      ])
    },
  },
  {
    name: 'Time of a request',
    text: msText,
    of: (now, before) => inMs([['99 %', slowest('strandfast_http_request_seconds', now, before)]]),
  },
  {
    name: 'Commands that wait, by shard',
    text: countText,
    of: (now) => now.by('strandfast_shard_queue_depth', 'shard', (shard) => `shard ${shard}`),
  },
  {
    name: 'Event loop lag, 99 %',
    text: msText,
    of: (now) => {
      const secs = now.total('nodejs_eventloop_lag_p99_seconds')
      return one(secs === undefined ? undefined : secs * 1_000)
    },
  },
  { name: 'Requests a second, by status', text: oneDigit, of: (now, before) => ratesBy(now, before) },
  { name: 'Disk free', text: bytesText, of: (now) => one(now.total('strandfast_disk_free_bytes')) },
  {
    name: 'PostgreSQL behind by',
    text: secsText,
    of: (now) => one(now.total('strandfast_sink_lag_seconds')),
  },
  {
    name: 'Refused lines a second',
    text: oneDigit,
    of: (now, before) => one(perSec('strandfast_ingest_refused_lines_total', now, before)),
  },
]

/** Seconds by their labels as milliseconds, without those that are not known. */
function inMs(secs: readonly (readonly [label: string, secs: number | undefined])[]): Map<string, number> {
  return new Map(
    secs.flatMap(([label, value]) => (value === undefined ? [] : [[label, value * 1_000] as const])),
  )
}

const SHARE_BELOW = 0.99

/**
 * What 99 % of the values since the reading before were below. Between two bounds of the histogram values are taken to
 * be spread evenly, as Prometheus takes them; beyond its last bound, that one is told.
 * @returns undefined where there was no value
 */
export function slowest(
  name: HistogramName,
  now: MetricsReading,
  before: MetricsReading,
): number | undefined {
  const counted = before.buckets(name)
  const bounds = [...now.buckets(name)]
    .map(([bound, count]) => ({ bound, count: grownBy(counted.get(bound) ?? 0, count) }))
    .sort((a, b) => a.bound - b.bound)
  const all = bounds.at(-1)?.count ?? 0
  if (all === 0) return undefined
  const wanted = all * SHARE_BELOW
  const at = bounds.findIndex(({ count }) => count >= wanted)
  const [low, high] = [bounds[at - 1] ?? { bound: 0, count: 0 }, bounds[at]]
  if (high === undefined || high.bound === Infinity) return low.bound
  return low.bound + ((wanted - low.count) / (high.count - low.count)) * (high.bound - low.bound)
}

function one(value: number | undefined): ReadonlyMap<string, number> {
  return value === undefined ? new Map() : new Map([['', value]])
}

/** Of each commit; undefined where there was none. */
function ratio(name: MetricName, now: MetricsReading, before: MetricsReading): number | undefined {
  const commits = grown('strandfast_commits_total', now, before) ?? 0
  const amount = grown(name, now, before)
  return amount === undefined || commits === 0 ? undefined : amount / commits
}

function ratesBy(now: MetricsReading, before: MetricsReading): ReadonlyMap<string, number> {
  const sums = (reading: MetricsReading) => reading.by('strandfast_http_requests_total', 'status', classOf)
  const first = sums(before)
  const secs = (now.atMs - before.atMs) / 1_000
  return new Map(
    [...sums(now)].sort().map(([name, last]) => [name, grownBy(first.get(name) ?? 0, last) / secs]),
  )
}

/** `0` is the status where the client has left first. */
function classOf(status: string): string {
  return status === '0' ? 'client left' : `${status.slice(0, 1)}xx`
}
