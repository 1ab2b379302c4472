import type { Telemetry } from './telemetry.js'

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
