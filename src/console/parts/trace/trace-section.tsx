import { Read, useLoaded } from '../load.js'
import type { RecordRow } from '../records/record-row.js'
import { session, type SignedIn } from '../session.js'
import { CopyButton, Facts } from '../texts.js'
import { traceLink } from '../../route.js'
import { aboveOf, findTrace, type SearchedTimes, spansAbove, type Trace } from './find-trace.js'
import { durationOf, msOfNanoseconds, type Telemetry, telemetryOf, traceIdOf } from './telemetry.js'
import { Duration, ExactTime, Outcome, TelemetryLink } from './telemetry-texts.js'

/** The most agents that are searched when a record is opened; the page of its trace searches more. */
const AGENTS_SEARCHED = 50
/** A span is written when it has ended, so the spans around it are written later. */
const MARGIN_MS = 3_600_000

/** A span or a log record of OpenTelemetry: its times, and the spans above and the records below it. */
export function TraceSection({ agent, row }: { agent: string; row: RecordRow }) {
  const { value } = session
  const record = telemetryOf(agent, row)
  if (record === undefined || value.kind !== 'in') return null
  const { isSpan, name, service, kind, startNs, endNs, status } = record
  const traceId = traceIdOf(record.traceId)
  const times = timesAround(row, durationOf(record) ?? 0n)
  return (
    <section aria-labelledby="trace-title">
      <h3 id="trace-title">{isSpan ? 'Span' : 'Log record'}</h3>
      <Facts
        facts={{
          [isSpan ? 'Name' : 'Text']: <bdi>{name}</bdi>,
          Service: service === '' ? undefined : <bdi>{service}</bdi>,
          Kind: isSpan && kind !== '' ? kind : undefined,
          [isSpan ? 'Status' : 'Severity']:
            (isSpan ? status : kind) === '' ? undefined : <Outcome record={record} />,
          Duration: durationOf(record) === undefined ? undefined : <Duration record={record} />,
          [isSpan ? 'Start' : 'Time']: startNs === undefined ? undefined : <ExactTime at={startNs} />,
          End: endNs === undefined ? undefined : <ExactTime at={endNs} />,
          Trace:
            traceId === undefined ? undefined : (
              <>
                <a href={traceLink(traceId, times)}>
                  <code>{traceId}</code>
                </a>
                <CopyButton text={traceId} name="the trace ID" />
              </>
            ),
        }}
      />
      {traceId !== undefined && <Relatives {...{ current: value, record, traceId, times }} />}
    </section>
  )
}

/** The times at which the other records of a trace were written. */
function timesAround({ ms }: RecordRow, duration: bigint): SearchedTimes {
  const from = ms - Math.ceil(msOfNanoseconds(duration)) - MARGIN_MS
  return { fromMs: from > 0 ? from : undefined, toMs: ms + MARGIN_MS }
}

/** The spans above a record, and the spans and log records below it. */
function Relatives(props: { current: SignedIn; record: Telemetry; traceId: string; times: SearchedTimes }) {
  const { current, record, traceId, times } = props
  const { agent, seq } = record
  const read = useLoaded<Trace>(`${agent} ${seq}`, (signal) =>
    findTrace(current, { traceId, ...times, first: agent, most: AGENTS_SEARCHED, signal }),
  )
  return (
    <Read of={read} what="the trace">
      {(trace) => <Found record={record} trace={trace} whole={traceLink(traceId, times)} />}
    </Read>
  )
}

/** @param props.whole the address of the whole trace */
function Found({ record, trace, whole }: { record: Telemetry; trace: Trace; whole: string }) {
  const { isSpan, spanId } = record
  const above = spansAbove(trace.records, record)
  const [outermost = record] = above
  const missing = aboveOf(outermost)
  const below = isSpan && spanId !== '' ? trace.records.filter((one) => aboveOf(one) === spanId) : []
  const listed = (records: readonly Telemetry[], name: string) =>
    records.length === 0 ? undefined : <List records={records} name={name} />
  return (
    <>
      <Facts
        facts={{
          'Parent spans': listed(above, 'Parent spans'),
          'Child spans': listed(
            below.filter((one) => one.isSpan),
            'Child spans',
          ),
          Logs: listed(
            below.filter((one) => !one.isSpan),
            'Logs',
          ),
        }}
      />
      {missing !== '' && (
        <p class="notice">
          The span <code>{missing}</code> above was not found, one hour before and after.{' '}
          <a href={whole}>Search the whole trace</a>
        </p>
      )}
      {trace.isCut && <p class="muted">Not all agents were searched.</p>}
    </>
  )
}

const LISTED = 100

function List({ records, name }: { records: readonly Telemetry[]; name: string }) {
  return (
    <ol class="plain" aria-label={name}>
      {records.slice(0, LISTED).map((record) => (
        <li key={`${record.agent} ${record.seq}`}>
          <TelemetryLink record={record} /> <Duration record={record} /> <Outcome record={record} />{' '}
          <small class="muted">{record.agent}</small>
        </li>
      ))}
      {records.length > LISTED && <li class="muted">and {records.length - LISTED} more</li>}
    </ol>
  )
}
