import { countText, bytesText } from '../parts/format.js'
import { grownBy, type MetricName, type Reading } from './metrics.js'

/** Something that is plotted: one line, or one for each label. */
export interface Figure {
  name: string
  text: (value: number) => string
  /** The values of a moment by their labels; empty where nothing is known. */
  of: (now: Reading, before: Reading) => ReadonlyMap<string, number>
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
      const secs = ratio('strandfast_commit_seconds_total', now, before)
      return one(secs === undefined ? undefined : secs * 1_000)
    },
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

function one(value: number | undefined): ReadonlyMap<string, number> {
  return value === undefined ? new Map() : new Map([['', value]])
}

/** How much a counter grows a second; undefined where it is not measured. */
export function perSec(name: MetricName, now: Reading, before: Reading): number | undefined {
  const count = grown(name, now, before)
  return count === undefined ? undefined : (count * 1_000) / (now.atMs - before.atMs)
}

function grown(name: MetricName, now: Reading, before: Reading): number | undefined {
  const [last, first] = [now.total(name), before.total(name)]
  return last === undefined || first === undefined ? undefined : grownBy(first, last)
}

/** Of each commit; undefined where there was none. */
function ratio(name: MetricName, now: Reading, before: Reading): number | undefined {
  const commits = grown('strandfast_commits_total', now, before) ?? 0
  const amount = grown(name, now, before)
  return amount === undefined || commits === 0 ? undefined : amount / commits
}

function ratesBy(now: Reading, before: Reading): ReadonlyMap<string, number> {
  const sums = (reading: Reading) => reading.by('strandfast_http_requests_total', 'status', classOf)
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
