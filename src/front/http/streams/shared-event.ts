import { grantOfText, type GrantText } from '../../../auth/grant.js'
import { allows } from '../../../auth/row-policy.js'
import { assert } from '../../../base/assert.js'
import type { StreamEvent } from '../../../protocol/stream-messages.js'
import { storedSteps } from '../../../strand/field-path.js'
import { parseHlc, zeroHlc, type Hlc } from '../../../strand/hlc.js'
import { Fields } from '../../../strand/json-fields.js'
import { matchesTypes } from '../../../strand/record-type.js'
import type { StreamRequest } from '../../routes/route.js'
import { recordEvent } from './events.js'

/**
 * Which events of an agent a stream shows: those that the user's policies allow, filtered by the stream's
 * record types and field filter.
 */
export interface View {
  /** Equal views have equal keys. */
  readonly key: string
  readonly filter: string | undefined
  /** Undefined for all except system types. */
  readonly types: readonly string[] | undefined
  /** Undefined for a key, to which row policies do not apply. */
  readonly readable: GrantText | undefined
}

/** The view that shows every event except those of system records. */
export const wholeView: View = { key: '', filter: undefined, types: undefined, readable: undefined }

/** Creates a view; without parameters and restrictions, always the same `wholeView` object. */
export function viewOf(
  { filter, types }: Pick<StreamRequest, 'filter' | 'types'>,
  readable: GrantText | undefined,
): View {
  if (filter === undefined && types === undefined && readable === undefined) return wholeView
  return { key: JSON.stringify([filter, types, readable?.key]), filter, types, readable }
}

/** An event for many streams: its payload is parsed once for all streams with the same view. */
export class SharedEvent {
  readonly event: StreamEvent
  readonly hlc: Hlc
  readonly #verdicts = new Map<string, boolean>()
  #record: SeenRecord | undefined

  constructor(event: StreamEvent) {
    this.event = event
    this.hlc = parseHlc(event.hlc) ?? zeroHlc
  }

  /** Whether the view shows the event. The filter is not applied to events that policies hide. */
  isShown(view: View): boolean {
    if (view.types === undefined && this.event.isSystem === true) return false
    if (view === wholeView) return true
    const known = this.#verdicts.get(view.key)
    if (known !== undefined) return known
    const { readable, filter, types } = view
    const shown =
      (types === undefined || matchesTypes(this.#parsed().type, types)) &&
      (readable === undefined || allows(grantOfText(readable).policies, this.#parsed())) &&
      (filter === undefined || hasField(this.#parsed().body, filter))
    this.#verdicts.set(view.key, shown)
    return shown
  }

  #parsed(): SeenRecord {
    this.#record ??= recordOf(this.event)
    return this.#record
  }
}

/** Events of one shard that were committed together. */
export class EventBatch {
  readonly events: readonly SharedEvent[]
  /** Characters of the data of all events. */
  readonly size: number
  readonly #texts = new Map<string, Buffer>()

  constructor(events: readonly StreamEvent[]) {
    this.events = events.map((event) => new SharedEvent(event))
    this.size = events.reduce((sum, event) => sum + event.data.length, 0)
  }

  /** The formatted events for all streams of one agent with that view; each event's id is its seq. */
  textOf(view: View): Buffer {
    const known = this.#texts.get(view.key)
    if (known !== undefined) return known
    const shown = this.events.filter((seen) => seen.isShown(view))
    const text = Buffer.from(shown.map(({ event }) => recordEvent(String(event.seq), event)).join(''))
    this.#texts.set(view.key, text)
    return text
  }
}

/** The type of a record, and its body in canonical JSON. */
interface SeenRecord {
  type: string
  body: Buffer
}

const eventFields = new Fields()
eventFields.add(['payload'])
eventFields.add(['type'])

function recordOf(event: StreamEvent): SeenRecord {
  const data = Buffer.from(event.data)
  const [body, type] = eventFields.find(data)
  assert(body !== undefined && type !== undefined, 'each event has its payload and type')
  // Types contain no characters that JSON escapes.
  return {
    type: data.toString('latin1', type.from + 1, type.to - 1),
    body: data.subarray(body.from, body.to),
  }
}

/**
 * Whether a body has the field of a stream's filter; a member whose name contains the dots counts as well.
 */
function hasField(body: Buffer, field: string): boolean {
  const fields = new Fields()
  fields.add(storedSteps(field))
  if (!field.startsWith('/')) fields.add([field])
  return fields.find(body).some((span) => span !== undefined)
}
