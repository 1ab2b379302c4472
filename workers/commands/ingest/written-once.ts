import { createHash } from 'node:crypto'
import { refuse, type Refusal } from '../../../src/base/errors.js'
import { placementOf } from '../../../src/strand/placement.js'
import { canonicalJson } from '../../../src/strand/json.js'
import { isJsonData, mediaTypeOf } from '../../../src/wire/ingest.js'
import type { IngestedOutcome } from '../../../src/protocol/record-messages.js'
import type { WriteOnce } from '../../../src/protocol/command-options.js'
import { isTimestamp } from '../../../src/strand/moment.js'
import type { CommitGroup, Draft } from '../../shard/commit-group.js'
import { faulty, isObject } from '../drafts.js'
import { storeAnswer, type KeyedRequest } from '../idempotency/answers.js'
import type { ShardState } from '../../shard/state.js'
import { idempotencyRow } from '../../store/tables/idempotency.js'
import type { SeqRange } from '../../store/tables/erasures.js'

/** The identity of a record that is written once: the row of its key and a digest of its content. */
export type OnceKey = KeyedRequest

/** The attributes that every CloudEvent has (CloudEvents 1.0, Required Attributes). */
const eventAttributes = ['id', 'source', 'type'] as const

/**
 * The key of a record that is written once, by agent and caller: a digest of the record, or the source and id
 * of a CloudEvent; 400 for an invalid CloudEvent. It contains a line feed, so it never equals an
 * Idempotency-Key of a client.
 */
export function onceKey({ by, caller }: WriteOnce, agent: string, { type, body }: Draft): OnceKey | Refusal {
  const event: unknown = by === 'event' ? JSON.parse(Buffer.from(body).toString()) : undefined
  const content = isObject(event) ? contentOf(event) : body
  const digest = createHash('sha256').update(`${type}\n`).update(content).digest('base64')
  const name = by === 'event' ? eventName(event) : digest
  if (typeof name !== 'string') return name
  const row = idempotencyRow(caller, agent, `\n${by}\n${name}`)
  return { row, agent, digest, place: placementOf(agent), ...(by === 'body' && { isByContent: true }) }
}

/** The key of a kept refused line. */
export function rejectedKey({ caller }: WriteOnce, agent: string, bytes: Uint8Array): OnceKey {
  const digest = createHash('sha256').update(bytes).digest('base64')
  const row = idempotencyRow(caller, agent, `\nrejected\n${digest}`)
  return { row, agent, digest, place: placementOf(agent), isByContent: true }
}

function eventName(event: unknown): string | Refusal {
  if (!isObject(event) || event['specversion'] !== '1.0') {
    return faulty('/specversion', 'Expected a CloudEvent of specversion 1.0')
  }
  for (const name of eventAttributes) {
    const value = event[name]
    if (typeof value !== 'string' || value === '') {
      return faulty(`/${name}`, `Expected a CloudEvent with the attribute ${name}`)
    }
  }
  // A member that is null counts as absent (CloudEvents JSON Format, 2.2).
  const { time = null, data_base64: binary = null } = event
  if (time !== null && !(typeof time === 'string' && isTimestamp(time)))
    return faulty('/time', 'Expected an RFC 3339 time such as 2026-01-31T12:00:00Z')
  if (binary !== null && Object.hasOwn(event, 'data'))
    return faulty('/data_base64', 'Expected a CloudEvent with either data or data_base64')
  return JSON.stringify([event['source'], event['id']])
}

/**
 * An event as a text that is the same in every content mode: in binary mode all attributes are strings, the
 * media type of JSON is explicit, and other data arrives as bytes (CloudEvents 1.0, HTTP Protocol Binding).
 */
function contentOf({ data, datacontenttype, ...others }: Record<string, unknown>): string {
  const mediaType = typeof datacontenttype === 'string' ? mediaTypeOf(datacontenttype) : ''
  const attributes = Object.entries(others)
    .filter(([, value]) => value !== null)
    .map(([name, value]): [string, unknown] => [name, typeof value === 'object' ? value : String(value)])
  const isBytes = typeof data === 'string' && !isJsonData(mediaType)
  return canonicalJson({
    ...Object.fromEntries(attributes),
    ...(mediaType !== '' && mediaType !== 'application/json' && { datacontenttype: mediaType }),
    ...(isBytes ? { data_base64: Buffer.from(data).toString('base64') } : data !== undefined && { data }),
  })
}

/** 422 for an event with the source and id of an earlier, different event. */
export const eventReused: Refusal = refuse(
  'idempotency_key_reused',
  'This source and id were already used for a different event',
)

const written: IngestedOutcome = { kind: 'ingested', accepted: 1, rejected: 0, faults: [], agents: [] }

/** Stores for a day that records were written, in their transaction. */
export function storeWritten(
  state: ShardState,
  group: CommitGroup,
  { key, seqs }: { key: OnceKey; seqs: SeqRange },
): void {
  storeAnswer(state, group, { ...key, seqs, outcome: () => written })
}
