import { durationText } from '../../base/duration.js'
import type { ServerInfo } from '../../client/index.js'
import type { MetricsReading } from '../parts/metrics.js'
import { counted, countText, timeText } from '../parts/format.js'

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

/** The warnings about the server, the most severe first. */
export function warningsOf(
  server: ServerInfo | undefined,
  { readings, nowMs }: { readings: readonly MetricsReading[]; nowMs: number },
): Warning[] {
  const now = readings.at(-1)
  return [
    ...(now?.total('strandfast_shards_serving') === 0 || server?.serving === false
      ? [
          {
            name: 'A shard is not serving',
            text: 'Requests for its agents return 503. See the server’s log for the reason.',
            href: '#/health',
          },
        ]
      : []),
    // In a cluster, other nodes take the shards of a node whose disk is full.
    ...(server?.read_only === true && server.cluster === null
      ? [
          {
            name: 'The server is read-only',
            text: 'The data disk is nearly full: writes return 507 until space is freed.',
            href: '#/health',
          },
        ]
      : []),
    ...(server?.open_modes ?? []).map((text) => ({
      name: 'Open to anyone',
      text: `${text}.`,
      href: undefined,
    })),
    ...(server?.cluster?.problems ?? []).map((text) => ({
      name: 'A node of the cluster lacks something',
      text: `${text}.`,
      href: undefined,
    })),
    ...(server?.cluster?.differences ?? []).map((text) => ({
      name: 'Nodes differ',
      text,
      href: undefined,
    })),
    ...(server?.cluster?.faults ?? []).map((text) => ({
      name: 'A row of the cluster’s database is invalid and ignored',
      text: `${text}.`,
      href: undefined,
    })),
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
  if (state !== 'valid')
    return [
      {
        name: `The license is ${state}`,
        text: 'Without a valid license, sign-in and the routes of users return 402.',
        href,
      },
    ]
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
