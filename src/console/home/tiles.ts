import { durationText } from '../../base/duration.js'
import { perSec, type MetricsReading } from '../parts/metrics.js'
import { bytesText, countText, timeText } from '../parts/format.js'
import { AGENTS_COUNTED, type Overview } from './read-overview.js'

/** A figure with a link to its details. */
export interface Tile {
  name: string
  value: string
  note: string
  href: string
}

const none = '–'

/** The figures of the key's agents and proposals. */
export function ownTiles({ accessible, proposals }: Overview): Tile[] {
  const tiles: Tile[] = []
  if (accessible !== undefined) {
    const { statuses, isCut } = accessible
    const records = statuses.reduce((sum, { record_count: count }) => sum + count, 0)
    const bytes = statuses.reduce((sum, one) => sum + one.bytes, 0)
    const note = isCut ? `of the first ${countText(AGENTS_COUNTED)} agents` : bytesText(bytes)
    tiles.push(
      {
        name: 'Agents',
        value: andMore(statuses.length, isCut),
        note: 'one strand each',
        href: '#/agents',
      },
      { name: 'Records', value: andMore(records, isCut), note, href: '#/agents' },
    )
  }
  if (proposals !== undefined) {
    const { count, isCut, agents } = proposals
    const note = agents === undefined ? 'waiting for a decision' : `of the ${agents} agents written last`
    tiles.push({ name: 'Pending proposals', value: andMore(count, isCut), note, href: '#/proposals' })
  }
  return tiles
}

function andMore(count: number, isCut: boolean): string {
  return isCut ? `${countText(count)}+` : countText(count)
}

/** The figures of the server, for administrators. */
export function serverTiles(readings: readonly MetricsReading[], nowMs: number): Tile[] {
  const [now, before] = [readings.at(-1), readings.at(-2)]
  const rate =
    now === undefined || before === undefined ? undefined : perSec('strandfast_records_total', now, before)
  const streams = now?.total('strandfast_streams_open')
  const free = now?.total('strandfast_disk_free_bytes')
  return [
    {
      name: 'Records per second',
      value: rate === undefined ? none : countText(Math.round(rate)),
      note: 'now',
      href: '#/live',
    },
    {
      name: 'Open streams',
      value: streams === undefined ? none : countText(streams),
      note: 'including this page',
      href: '#/health',
    },
    {
      name: 'Free disk space',
      value: free === undefined ? none : bytesText(free),
      note: 'on the data disk',
      href: '#/health',
    },
    backupTile(now, nowMs),
    logTile(now, nowMs),
  ]
}

function backupTile(now: MetricsReading | undefined, nowMs: number): Tile {
  const about = { name: 'Last backup', href: '#/health' }
  const secs = now?.total('strandfast_backup_completed_timestamp_seconds')
  if (secs === undefined) return { ...about, value: none, note: '' }
  if (secs === 0) return { ...about, value: 'None', note: 'since the server started' }
  return { ...about, value: agoText(secs, nowMs), note: timeText(secs * 1_000) }
}

function logTile(now: MetricsReading | undefined, nowMs: number): Tile {
  const about = { name: 'Log lag', href: '#/log' }
  if (now === undefined) return { ...about, value: none, note: '' }
  const secs = now.total('strandfast_log_complete_timestamp_seconds')
  if (secs === undefined) return { ...about, value: 'Off', note: 'SERVICE_LOG_INTERVAL_SECS is 0' }
  if (secs === 0) return { ...about, value: none, note: 'not measured yet' }
  return { ...about, value: durationText(behindMs(secs, nowMs)), note: 'behind the heads of all strands' }
}

function agoText(secs: number, nowMs: number): string {
  return `${durationText(behindMs(secs, nowMs))} ago`
}

/** Milliseconds since then in whole seconds; 0 if the server's clock is ahead of the browser's. */
function behindMs(secs: number, nowMs: number): number {
  return Math.max(0, Math.round(nowMs / 1_000 - secs)) * 1_000
}
