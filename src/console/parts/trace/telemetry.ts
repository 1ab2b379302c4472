import { durationText } from '../../../base/duration.js'
import { isObject } from '../json.js'
import { countText, lineText } from '../format.js'
import type { RecordRow } from '../records/record-row.js'

/** The types of the records that the OTLP routes write: the OTLP JSON of a span or of a log record. */
export const telemetryTypes = ['otel/span', 'otel/log']

/** A span, or a log record with the span that it belongs to. Texts are empty if the record lacks them. */
export interface Telemetry {
  agent: string
  seq: number
  isSpan: boolean
  traceId: string
  spanId: string
  parentSpanId: string
  /** The name of the span, or the text of the log record. */
  name: string
  service: string
  /** The kind of the span, or the severity of the log record. */
  kind: string
  /** The status of the span, with its message. */
  status: string
  isError: boolean
  /** The start of the span, or the time of the log record, in nanoseconds since 1970. */
  startNs: bigint | undefined
  endNs: bigint | undefined
}

const traceIdPattern = /^(?!0+$)[0-9a-f]{32}$/

/** A trace ID as typed: 32 hex digits, not all zeros; undefined for any other text. */
export function traceIdOf(text: string): string | undefined {
  const digits = text.trim().toLowerCase()
  return traceIdPattern.test(digits) ? digits : undefined
}

/** Reads a record of one of the types; undefined for any other record. Anyone can write such a record. */
export function telemetryOf(agent: string, { seq, type, members }: RecordRow): Telemetry | undefined {
  if (!telemetryTypes.includes(type)) return undefined
  const isSpan = type === 'otel/span'
  const text = (name: string): string => textOf(members[name])
  const status = isObject(members['status']) ? members['status'] : {}
  const code = Number(status['code'] ?? 0)
  const severity = Number(members['severityNumber'] ?? 0)
  const startNs = nanosecondsOf(members[isSpan ? 'startTimeUnixNano' : 'timeUnixNano'])
  return {
    agent,
    seq,
    isSpan,
    traceId: text('traceId'),
    spanId: text('spanId'),
    parentSpanId: text('parentSpanId'),
    name: lineText(isSpan ? text('name') : anyValueText(members['body']) || text('eventName')),
    service: serviceOf(members['resource']),
    kind: isSpan ? (spanKinds[Number(members['kind'] ?? 0)] ?? '') : text('severityText'),
    status: lineText(
      [statusCodes[code] ?? '', textOf(status['message'])].filter((part) => part !== '').join(': '),
    ),
    isError: isSpan ? code === ERROR : severity >= SEVERITY_ERROR,
    startNs: startNs ?? nanosecondsOf(members['observedTimeUnixNano']),
    endNs: isSpan ? nanosecondsOf(members['endTimeUnixNano']) : undefined,
  }
}

/** The enums of opentelemetry-proto (trace.proto, logs.proto), by their numbers. */
const spanKinds = ['', 'internal', 'server', 'client', 'producer', 'consumer']
const statusCodes = ['', 'ok', 'error']
const ERROR = 2
const SEVERITY_ERROR = 17

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** An AnyValue of OTLP as text: `{"stringValue":"a"}` is `a`. */
function anyValueText(value: unknown): string {
  const [inner] = isObject(value) ? Object.values(value) : []
  return typeof inner === 'string' ? inner : (JSON.stringify(inner) ?? '')
}

function serviceOf(resource: unknown): string {
  const attributes = isObject(resource) ? resource['attributes'] : undefined
  const named: unknown = Array.isArray(attributes)
    ? attributes.find((one) => isObject(one) && one['key'] === 'service.name')
    : undefined
  return isObject(named) ? anyValueText(named['value']) : ''
}

function nanosecondsOf(value: unknown): bigint | undefined {
  return typeof value === 'string' && /^[0-9]{1,20}$/.test(value) && value !== '0' ? BigInt(value) : undefined
}

/** The milliseconds of a time or a duration in nanoseconds. */
export function msOfNanoseconds(nanoseconds: bigint): number {
  return Number(nanoseconds / 1_000n) / 1_000
}

/** A duration: `850 ns`, `12.4 ms`, `1.5 seconds`. */
export function shortDurationText(nanoseconds: bigint): string {
  const units = [
    ['ms', 1e6],
    ['µs', 1e3],
  ] as const
  const amount = Number(nanoseconds)
  if (amount >= 1e9) return durationText(amount / 1e6)
  const [unit, size] = units.find(([, one]) => amount >= one) ?? ['ns', 1]
  return `${countText(Number((amount / size).toPrecision(3)))} ${unit}`
}

/** The duration of a span; undefined if a time is missing or the end is before the start. */
export function durationOf({ startNs, endNs }: Telemetry): bigint | undefined {
  return startNs === undefined || endNs === undefined || endNs < startNs ? undefined : endNs - startNs
}
