import { countText } from '../format.js'
import { Time } from '../texts.js'
import { agentLink } from '../../route.js'
import { durationOf, msOfNanoseconds, shortDurationText, type Telemetry } from './telemetry.js'

export function TelemetryLink({ record: { agent, seq, name, isSpan } }: { record: Telemetry }) {
  return (
    <a href={agentLink(agent, seq)}>
      <bdi>{name === '' ? `${isSpan ? 'Span' : 'Log record'} without a name` : name}</bdi>
    </a>
  )
}

/** The status of a span, or the severity of a log record; nothing without one. */
export function Outcome({ record: { isSpan, kind, status, isError } }: { record: Telemetry }) {
  const text = isSpan ? status : kind
  return text === '' ? null : <span class={isError ? 'badge failure' : ''}>{text}</span>
}

/** The duration of a span; nothing for a log record. */
export function Duration({ record }: { record: Telemetry }) {
  const duration = durationOf(record)
  return duration === undefined ? null : <span class="duration">{shortDurationText(duration)}</span>
}

/** A time to the nanosecond. */
export function ExactTime({ at }: { at: bigint }) {
  const nanoseconds = Number(at % 1_000_000n)
  return (
    <>
      <Time ms={Math.floor(msOfNanoseconds(at))} />
      {nanoseconds > 0 && <small class="muted"> + {countText(nanoseconds)} ns</small>}
    </>
  )
}
