import { durationText } from '../../base/duration.js'
import { type MetricsReading, perSec } from '../parts/metrics.js'
import { bytesText, counted, countText, timeText } from '../parts/format.js'
import { AGENTS_COUNTED, type Overview } from './read-overview.js'
import type { ServerInfo } from '../../client/index.js'

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
    const href = '#/agents'
    tiles.push({ name: 'Agents', value: andMore(statuses.length, isCut), note: 'one strand each', href })
    tiles.push({ name: 'Records', value: andMore(records, isCut), note, href })
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
  const text = (value: number | undefined, textOf = countText): string =>
    value === undefined ? none : textOf(value)
  return [
    { name: 'Records per second', value: text(rate && Math.round(rate)), note: 'now', href: '#/live' },
    { name: 'Open streams', value: text(streams), note: 'including this page', href: '#/health' },
    { name: 'Free disk space', value: text(free, bytesText), note: 'on the data disk', href: '#/health' },
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

export interface Warning {
  name: string
  text: string
  href: string | undefined
}

/** The threshold of the alert in deploy/prometheus/alerts.yml. */
const LAG_SECS_MAX = 300
const DAY_MS = 86_400_000
/** A license that expires within this time causes a warning. */
const LICENSE_MS_LEFT = 14 * DAY_MS

const notServing: Warning = {
  name: 'A shard is not serving',
  text: 'Requests for its agents return 503. See the server’s log for the reason.',
  href: '#/health',
}
const readOnly: Warning = {
  name: 'The server is read-only',
  text: 'The data disk is nearly full: writes return 507 until space is freed.',
  href: '#/health',
}

/** The warnings about the server, the most severe first. */
export function warningsOf(
  server: ServerInfo | undefined,
  { readings, nowMs }: { readings: readonly MetricsReading[]; nowMs: number },
): Warning[] {
  const now = readings.at(-1)
  const isServing = now?.total('strandfast_shards_serving') !== 0 && server?.serving !== false
  // In a cluster, other nodes take the shards of a node whose disk is full.
  const isReadOnly = server?.read_only === true && server.cluster === null
  const { problems = [], differences = [], faults = [] } = server?.cluster ?? {}
  const each = (texts: readonly string[], name: string, end = '.'): Warning[] =>
    texts.map((text) => ({ name, text: text + end, href: undefined }))
  return [
    ...(isServing ? [] : [notServing]),
    ...(isReadOnly ? [readOnly] : []),
    ...each(server?.open_modes ?? [], 'Open to anyone'),
    ...each(problems, 'A node of the cluster lacks something'),
    ...each(differences, 'Nodes differ', ''),
    ...each(faults, 'A row of the cluster’s database is invalid and ignored'),
    ...lagWarning(now),
    ...licenseWarning(server?.license ?? null, nowMs),
    ...refusedWarning(now),
  ]
}

function lagWarning(now: MetricsReading | undefined): Warning[] {
  const secs = now?.total('strandfast_sink_lag_seconds') ?? 0
  if (secs <= LAG_SECS_MAX) return []
  const records = counted(now?.total('strandfast_sink_lag_records') ?? 0, 'record')
  const text = `${records} not written yet, the oldest for ${durationText(secs * 1_000)}. No data is lost: the server catches up when PostgreSQL accepts rows again.`
  return [{ name: 'PostgreSQL is behind', text, href: '#/health' }]
}

function licenseWarning(license: ServerInfo['license'], nowMs: number): Warning[] {
  if (license === null) return []
  const { state, expires_at_ms: expiresAtMs } = license
  const href = undefined
  const text = 'Without a valid license, sign-in and the routes of users return 402.'
  if (state !== 'valid') return [{ name: `The license is ${state}`, text, href }]
  if (expiresAtMs === null || expiresAtMs - nowMs > LICENSE_MS_LEFT) return []
  return [{ name: 'The license expires soon', text: `It is valid until ${timeText(expiresAtMs)}.`, href }]
}

function refusedWarning(now: MetricsReading | undefined): Warning[] {
  const codes = now?.by('strandfast_ingest_refused_lines_total', 'code') ?? new Map<string, number>()
  const total = [...codes.values()].reduce((sum, count) => sum + count, 0)
  if (total === 0) return []
  const each = [...codes].map(([code, count]) => `${code} ${countText(count)}`).join(', ')
  const text = `${counted(total, 'line')} since the server started: ${each}.`
  return [{ name: 'Ingest lines were refused', text, href: '#/health' }]
}
