import { assert } from '../base/assert.js'
import { allows } from '../auth/row-policy.js'
import type { StreamEvent } from '../protocol/messages.js'
import type { Condition } from '../strand/condition.js'
import { Fields } from '../strand/json-fields.js'

/*
 * Framing of server-sent events (WHATWG HTML, 9.2). Nothing sent has a line break of its own: data is canonical JSON
 * in one line, ids are digits and letters.
 */

/** How long a client waits before it connects again, milliseconds; the first thing that a stream says. */
export const retryLine = 'retry: 2000\n\n'

/** Keeps the connection open; clients pass over it. */
export const heartbeat = ': keep-alive\n\n'

/** One record. */
export function recordEvent(id: string, event: StreamEvent): string {
  return `id: ${id}\nevent: record\ndata: ${event.data}\n\n`
}

/** Replay has met live. The id lets a client that has had no event yet go on from here. */
export function caughtUpEvent(id: string): string {
  return `id: ${id}\nevent: caught_up\ndata: {}\n\n`
}

/** Whether one of the policies that let a user read the event's agent allows its payload. */
export function isReadable(event: StreamEvent, readable: Condition[][] | undefined): boolean {
  return readable !== undefined && allows(readable, payloadOf(event))
}

/** Whether the payload of an event has the field that a stream is filtered by: a member, or a dotted path. */
export function hasField(event: StreamEvent, field: string): boolean {
  const fields = new Fields()
  fields.add([field])
  fields.add(field.split('.'))
  return fields.find(payloadOf(event)).some((span) => span !== undefined)
}

const payloadField = new Fields()
payloadField.add(['payload'])

/** The body of the record, canonical JSON. */
function payloadOf(event: StreamEvent): Buffer {
  const data = Buffer.from(event.data)
  const [span] = payloadField.find(data)
  assert(span !== undefined, 'each event has its payload')
  return data.subarray(span.from, span.to)
}
