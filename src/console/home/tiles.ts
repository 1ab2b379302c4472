import { perSec, type MetricsReading } from '../parts/metrics.js'
import { bytesText, countText, durationText, timeText } from '../parts/format.js'
import { AGENTS_COUNTED, type Overview } from './read-overview.js'

/** A figure that leads to where there is more of it. */
export interface Tile {
  name: string
  value: string
  note: string
  href: string
}

const none = '–'

/** What a key sees of its agents and of proposals. */
export function ownTiles({ reached, proposals }: Overview): Tile[] {
  const tiles: Tile[] = []
  if (reached !== undefined) {
    const { statuses, isCut } = reached
    const records = statuses.reduce((sum, { record_count: count }) => sum + count, 0)
    const bytes = statuses.reduce((sum, one) => sum + one.bytes, 0)
    const note = isCut ? `of the first ${countText(AGENTS_COUNTED)} agents` : bytesText(bytes)
    tiles.push(
      {
        name: 'Agents',
        value: andMore(statuses.length, isCut),
        note: 'strands of records',
        href: '#/agents',
      },
      { name: 'Records', value: andMore(records, isCut), note, href: '#/agents' },
    )
  }
  if (proposals !== undefined) {
    const value = andMore(proposals.count, proposals.isCut)
    tiles.push({ name: 'Proposals waiting', value, note: 'changes to be decided', href: '#/proposals' })
  }
  return tiles
}

function andMore(count: number, isCut: boolean): string {
  return isCut ? `${countText(count)}+` : countText(count)
}

/** What an administrator sees of the server. */
export function serverTiles(readings: readonly MetricsReading[], nowMs: number): Tile[] {
  const [now, before] = [readings.at(-1), readings.at(-2)]
  const rate =
    now === undefined || before === undefined ? undefined : perSec('strandfast_records_total', now, before)
  const streams = now?.total('strandfast_streams_open')
  const free = now?.total('strandfast_disk_free_bytes')
  return [
    {
      name: 'Records a second',
      value: rate === undefined ? none : countText(Math.round(rate)),
      note: 'now',
      href: '#/live',
    },
    {
      name: 'Open streams',
      value: streams === undefined ? none : countText(streams),
      note: 'this page has one',
      href: '#/health',
    },
    {
      name: 'Disk free',
      value: free === undefined ? none : bytesText(free),
      note: 'of the data',
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
  if (secs === 0) return { ...about, value: 'None', note: 'since the server’s start' }
  return { ...about, value: agoText(secs, nowMs), note: timeText(secs * 1_000) }
}

function logTile(now: MetricsReading | undefined, nowMs: number): Tile {
  const about = { name: 'Log behind by', href: '#/log' }
  if (now === undefined) return { ...about, value: none, note: '' }
  const secs = now.total('strandfast_log_complete_timestamp_seconds')
  if (secs === undefined) return { ...about, value: 'Off', note: 'SERVICE_LOG_INTERVAL_SECS is 0' }
  if (secs === 0) return { ...about, value: none, note: 'not looked at yet' }
  return { ...about, value: durationText(behindMs(secs, nowMs)), note: 'of the heads of all strands' }
}

function agoText(secs: number, nowMs: number): string {
  return `${durationText(behindMs(secs, nowMs))} ago`
}

/** Whole seconds since then; 0 where the clock of the server is ahead of this one. */
function behindMs(secs: number, nowMs: number): number {
  return Math.max(0, Math.round(nowMs / 1_000 - secs)) * 1_000
}
