import type { MetricsReading } from '../parts/metrics.js'
import { counted, countText, durationText, timeText } from '../parts/format.js'
import type { Overview } from './read-overview.js'

/** Something that somebody should look at. */
export interface Warning {
  name: string
  text: string
  href: string | undefined
}

/** PostgreSQL is behind by as long as the alert of deploy/prometheus/alerts.yml has it. */
const LAG_SECS_MAX = 300
const DAY_MS = 86_400_000
/** A license that ends within this is worth a word. */
const LICENSE_MS_LEFT = 14 * DAY_MS

/** What is the matter with the server, the worst first. */
export function warningsOf(
  { server }: Overview,
  { readings, nowMs }: { readings: readonly MetricsReading[]; nowMs: number },
): Warning[] {
  const now = readings.at(-1)
  return [
    ...(now?.total('strandfast_shards_serving') === 0 || server?.serving === false
      ? [
          {
            name: 'A shard does not serve',
            text: 'Its agents answer 503. The server’s log says why.',
            href: '#/health',
          },
        ]
      : []),
    ...(server?.read_only === true
      ? [
          {
            name: 'The server is read-only',
            text: 'The data disk is nearly full: writes answer 507 until there is room.',
            href: '#/health',
          },
        ]
      : []),
    ...(server?.open_modes ?? []).map((text) => ({
      name: 'Open to anyone',
      text: `${text}.`,
      href: undefined,
    })),
    ...(server?.cluster?.differences ?? []).map((text) => ({
      name: 'Settings differ',
      text,
      href: undefined,
    })),
    ...(server?.cluster?.faults ?? []).map((text) => ({
      name: 'A row of the cluster’s database is not believed',
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
  const text = `It lacks ${records}, the oldest for ${durationText(secs * 1_000)}. Nothing is lost: it catches up once it takes rows again.`
  return [{ name: 'PostgreSQL is behind', text, href: '#/health' }]
}

function licenseWarning(license: NonNullable<Overview['server']>['license'], nowMs: number): Warning[] {
  if (license === null) return []
  const { state, expires_at_ms: expiresAtMs } = license
  const href = undefined
  if (state !== 'valid')
    return [
      {
        name: `The license is ${state}`,
        text: 'Sign-in and the routes of users answer 402 without one.',
        href,
      },
    ]
  if (expiresAtMs === null || expiresAtMs - nowMs > LICENSE_MS_LEFT) return []
  return [{ name: 'The license ends soon', text: `It is valid until ${timeText(expiresAtMs)}.`, href }]
}

function refusedWarning(now: MetricsReading | undefined): Warning[] {
  const codes = now?.by('strandfast_ingest_refused_lines_total', 'code') ?? new Map<string, number>()
  const total = [...codes.values()].reduce((sum, count) => sum + count, 0)
  if (total === 0) return []
  const each = [...codes].map(([code, count]) => `${code} ${countText(count)}`).join(', ')
  const text = `${counted(total, 'line')} since the server’s start: ${each}.`
  return [{ name: 'Lines of ingest were refused', text, href: '#/health' }]
}
