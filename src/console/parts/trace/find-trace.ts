import { readAccessibleAgents } from '../accessible-agents.js'
import { isoOf, msOf } from '../format.js'
import { rowOfQuery } from '../records/record-row.js'
import { hasScope, type SignedIn } from '../session.js'
import { type Telemetry, telemetryOf, telemetryTypes } from './telemetry.js'

/** The most agents whose status is read. */
const STATUSES_MAX = 1_000
/** The most pages that are read of one agent. */
const PAGES_MAX = 10
const PAGE_RECORDS = 500
/** No further agent is searched after so many records of a trace. */
const RECORDS_MAX = 2_000
/** The agents that are searched at the same time. */
const SEARCHES = 6

/** The times between which the records of a trace were written, in Unix milliseconds; undefined: unbounded. */
export interface SearchedTimes {
  fromMs: number | undefined
  toMs: number | undefined
}

/** The records of a trace, by the time at which they began. */
export interface Trace {
  records: Telemetry[]
  /** Whether agents, or older records of an agent, were left out. */
  isCut: boolean
}

/**
 * Searches the agents that the session can read for the spans and log records of a trace.
 * @param of `first` is searched in any case; at most `most` agents are searched, last written ones first
 */
export async function findTrace(
  current: SignedIn,
  of: SearchedTimes & { traceId: string; first?: string; most: number; signal: AbortSignal },
): Promise<Trace> {
  const { agents, isCut } = await agentsToSearch(current, of)
  const trace: Trace = { records: [], isCut }
  const search = async (): Promise<void> => {
    while (trace.records.length < RECORDS_MAX) {
      const agent = agents.shift()
      if (agent === undefined) return
      const found = await findInAgent(current, agent, of)
      trace.records.push(...found.records)
      trace.isCut ||= found.isCut
    }
  }
  await Promise.all(Array.from({ length: SEARCHES }, search))
  trace.isCut ||= agents.length > 0
  trace.records.sort((one, other) => {
    const [a, b] = [one.startNs ?? 0n, other.startNs ?? 0n]
    return a < b ? -1 : a > b ? 1 : one.seq - other.seq
  })
  return trace
}

async function agentsToSearch(
  { service, who }: SignedIn,
  { first, fromMs = 0, most, signal }: SearchedTimes & { first?: string; most: number; signal: AbortSignal },
): Promise<{ agents: string[]; isCut: boolean }> {
  const known = first === undefined ? [] : [first]
  // The rules of agents let users read records, but not the list of agents.
  if (!hasScope(who, 'records:read')) return { agents: known, isCut: true }
  const { statuses, isCut } = await readAccessibleAgents(service, who, { most: STATUSES_MAX, signal })
  const written = statuses
    .filter(({ timestamp_hlc: hlc, agent_id: agent }) => msOf(hlc) >= fromMs && agent !== first)
    .sort((one, other) => (one.timestamp_hlc < other.timestamp_hlc ? 1 : -1))
    .map(({ agent_id: agent }) => agent)
  const agents = [...known, ...written]
  return { agents: agents.slice(0, most), isCut: isCut || agents.length > most }
}

async function findInAgent(
  { service }: SignedIn,
  agent: string,
  { traceId, fromMs, toMs, signal }: SearchedTimes & { traceId: string; signal: AbortSignal },
): Promise<Trace> {
  const records: Telemetry[] = []
  let cursor: string | undefined
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const found = await service.agent(agent).query(
      {
        type: 'time_range',
        types: telemetryTypes,
        where: [{ field: 'traceId', op: 'eq', value: traceId }],
        order: 'desc',
        limit: PAGE_RECORDS,
        ...(fromMs !== undefined && { from_ts: isoOf(fromMs) }),
        ...(toMs !== undefined && { to_ts: isoOf(toMs) }),
        ...(cursor !== undefined && { cursor }),
      },
      { signal },
    )
    records.push(...found.records.flatMap((record) => telemetryOf(agent, rowOfQuery(record)) ?? []))
    cursor = found.next_cursor ?? undefined
    if (cursor === undefined) break
  }
  return { records, isCut: cursor !== undefined }
}

/** A record of a trace, with the number of spans above it. */
export interface TreeRow {
  record: Telemetry
  depth: number
}

/**
 * The records of a trace in the order of a tree: below each span its spans and log records. Records whose
 * span is not among them come first in their order, and those of a circle last.
 */
export function treeOf(records: readonly Telemetry[]): TreeRow[] {
  const ids = new Set(spansOf(records).map(({ spanId }) => spanId))
  const below = new Map<string, Telemetry[]>([['', []]])
  for (const record of records) {
    const above = ids.has(aboveOf(record)) ? aboveOf(record) : ''
    below.set(above, [...(below.get(above) ?? []), record])
  }
  const rows: TreeRow[] = []
  const seen = new Set<Telemetry>()
  const visit = (from: readonly Telemetry[]): void => {
    // A stack, because a hostile trace can be deeper than the calls of a browser.
    const stack = from.map((record) => ({ record, depth: 0 })).reverse()
    for (let row = stack.pop(); row !== undefined; row = stack.pop()) {
      const { record, depth } = row
      if (seen.has(record)) continue
      seen.add(record)
      rows.push(row)
      if (!record.isSpan || record.spanId === '') continue
      const inside = below.get(record.spanId) ?? []
      stack.push(...inside.map((one) => ({ record: one, depth: depth + 1 })).reverse())
    }
  }
  visit(below.get('') ?? [])
  for (const record of records) visit([record])
  return rows
}

/** The spans above a record, outermost first. It ends at a span that was not found. */
export function spansAbove(records: readonly Telemetry[], record: Telemetry): Telemetry[] {
  const spans = new Map(spansOf(records).map((span) => [span.spanId, span]))
  const above: Telemetry[] = []
  let span = spans.get(aboveOf(record))
  while (span !== undefined && !above.includes(span)) {
    above.unshift(span)
    span = spans.get(span.parentSpanId)
  }
  return above
}

/** The ID of the span that contains a record; empty if there is none. */
export function aboveOf({ isSpan, spanId, parentSpanId }: Telemetry): string {
  return isSpan ? parentSpanId : spanId
}

function spansOf(records: readonly Telemetry[]): Telemetry[] {
  return records.filter(({ isSpan, spanId }) => isSpan && spanId !== '')
}
