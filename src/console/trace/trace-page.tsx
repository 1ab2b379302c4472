import { useState } from 'preact/hooks'
import { type AddressType, timeType, useAddress } from '../parts/address.js'
import { CardTable } from '../parts/card-table.js'
import { Form, Moment } from '../parts/field.js'
import { counted, countText, fieldOfMs, isUtc, msOfField } from '../parts/format.js'
import { Read, useLoaded } from '../parts/load.js'
import type { SignedIn } from '../parts/session.js'
import { Button, CopyButton, Empty, LineFacts } from '../parts/texts.js'
import { findTrace, type SearchedTimes, type Trace, treeOf, type TreeRow } from '../parts/trace/find-trace.js'
import { durationOf, shortDurationText, type Telemetry } from '../parts/trace/telemetry.js'
import { Duration, ExactTime, Outcome, TelemetryLink } from '../parts/trace/telemetry-texts.js'
import { traceLink } from '../route.js'

/** The most agents that are searched. */
const AGENTS_SEARCHED = 1_000
const DAY_MS = 86_400_000
/** As `timeType`, but null if it is empty: an address without it means the last 24 hours, an empty one all times. */
const fromType: AddressType<number | null | undefined> = {
  read: (texts) => (texts.length === 0 ? undefined : (timeType.read(texts) ?? null)),
  write: (ms) => (ms === null ? [''] : timeType.write(ms)),
  isStep: true,
}
const allTimes: SearchedTimes = { fromMs: undefined, toMs: undefined }

/** The spans and log records of a trace, over all agents that the key can read. */
export function TracePage({ session, id }: { session: SignedIn; id: string }) {
  const [dayAgoMs] = useState(() => Date.now() - DAY_MS)
  const [fromMs = dayAgoMs] = useAddress('from', fromType)
  const [toMs] = useAddress('to', timeType)
  const times = { fromMs: fromMs ?? undefined, toMs }
  const read = useLoaded<Trace>(JSON.stringify(times), (signal) =>
    findTrace(session, { traceId: id, ...times, most: AGENTS_SEARCHED, signal }),
  )
  return (
    <div class="page">
      <div class="head">
        <h1>Trace</h1>
        <span class="hash">
          <code>{id}</code>
          <CopyButton text={id} name="the trace ID" />
        </span>
      </div>
      <Times key={`${isUtc.value} ${JSON.stringify(times)}`} id={id} times={times} />
      <Read of={read} what="the trace">
        {(trace) => <Found id={id} trace={trace} />}
      </Read>
    </div>
  )
}

function Times({ id, times }: { id: string; times: SearchedTimes }) {
  const [from, setFrom] = useState(fieldOf(times.fromMs))
  const [to, setTo] = useState(fieldOf(times.toMs))
  return (
    <Form
      class="tools"
      submit={() => {
        location.hash = traceLink(id, { fromMs: msOfField(from), toMs: msOfField(to) })
      }}
    >
      <Moment name="Written from" value={from} set={setFrom} />
      <Moment name="Written to" value={to} set={setTo} />
      <Button text="Search" type="submit" />
      {(times.fromMs !== undefined || times.toMs !== undefined) && (
        <a href={traceLink(id, allTimes)}>Search all times</a>
      )}
    </Form>
  )
}

function fieldOf(ms: number | undefined): string {
  return ms === undefined ? '' : fieldOfMs(ms)
}

function Found({ id, trace }: { id: string; trace: Trace }) {
  const { records, isCut } = trace
  const cut = isCut && (
    <p class="notice warn">
      There may be more records: not all agents were searched, or not all of their records. Search a shorter
      time.
    </p>
  )
  if (records.length === 0) {
    return (
      <>
        {cut}
        <Empty title="No spans or logs of this trace">
          None was written in these times to an agent that this key can read.
        </Empty>
      </>
    )
  }
  return (
    <>
      {cut}
      <Summary records={records} />
      <Tree id={id} records={records} />
    </>
  )
}

function Summary({ records }: { records: readonly Telemetry[] }) {
  const { startNs, endNs } = extentOf(records)
  const spans = records.filter(({ isSpan }) => isSpan)
  const services = new Set(records.map(({ service, agent }) => service || agent))
  return (
    <LineFacts
      facts={{
        Records: `${counted(spans.length, 'span')}, ${counted(records.length - spans.length, 'log record')}`,
        Services: countText(services.size),
        Errors: countText(records.filter(({ isError }) => isError).length),
        Start: startNs === undefined ? undefined : <ExactTime at={startNs} />,
        Duration:
          startNs === undefined || endNs === undefined ? undefined : shortDurationText(endNs - startNs),
      }}
    />
  )
}

interface Extent {
  startNs: bigint | undefined
  endNs: bigint | undefined
}

/** The first and the last time of the records. */
function extentOf(records: readonly Telemetry[]): Extent {
  const extent: Extent = { startNs: undefined, endNs: undefined }
  for (const { startNs, endNs = startNs } of records) {
    if (startNs !== undefined && (extent.startNs === undefined || startNs < extent.startNs))
      extent.startNs = startNs
    if (endNs !== undefined && (extent.endNs === undefined || endNs > extent.endNs)) extent.endNs = endNs
  }
  return extent
}

function Tree({ id, records }: { id: string; records: readonly Telemetry[] }) {
  const extent = extentOf(records)
  const after = ({ startNs }: Telemetry): bigint | undefined =>
    startNs === undefined || extent.startNs === undefined ? undefined : startNs - extent.startNs
  return (
    <CardTable<TreeRow>
      name={`Records of trace ${id}`}
      class="trace"
      rows={treeOf(records)}
      keyOf={({ record }) => `${record.agent} ${record.seq}`}
      head={[
        'Span or log',
        ({ record, depth }) => (
          <span class="depth" style={{ '--depth': String(Math.min(depth, DEPTH_SHOWN)) }}>
            <span class="hidden">Level {depth + 1}: </span>
            <TelemetryLink record={record} />
          </span>
        ),
      ]}
      long={['Span or log', 'Agent']}
      numbers={['After start', 'Duration']}
      cells={{
        Agent: ({ record }) => record.agent,
        Outcome: ({ record }) => <Outcome record={record} />,
        'After start': ({ record }) => {
          const passed = after(record)
          return passed === undefined ? '' : shortDurationText(passed)
        },
        Duration: ({ record }) => <Duration record={record} />,
        Time: ({ record }) => <Bar extent={extent} record={record} />,
      }}
    />
  )
}

const DEPTH_SHOWN = 16
const BAR_WIDTH = 1_000

/** When a record began and ended, as a bar within the time of the trace. */
function Bar({ extent, record }: { extent: Extent; record: Telemetry }) {
  const { startNs, endNs } = extent
  if (startNs === undefined || endNs === undefined || endNs === startNs || record.startNs === undefined)
    return null
  const part = (nanoseconds: bigint): number => (BAR_WIDTH * Number(nanoseconds)) / Number(endNs - startNs)
  const width = Math.max(part(durationOf(record) ?? 0n), BAR_WIDTH / 200)
  const x = Math.min(part(record.startNs - startNs), BAR_WIDTH - width)
  return (
    <svg class="span-time" viewBox={`0 0 ${BAR_WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
      <rect class={record.isError ? 'bad' : ''} x={x} width={width} height="10" />
    </svg>
  )
}
