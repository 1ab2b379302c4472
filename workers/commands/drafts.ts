import { isUtf8 } from 'node:buffer'
import { asBuffer } from '../../src/base/bytes.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits.js'
import type { Signing } from '../../src/protocol/command-options.js'
import type { EventHead } from '../../src/protocol/record-messages.js'
import { canonicalJson, readJson } from '../../src/strand/json.js'
import { defaultRecordType, isRecordType, isReservedType } from '../../src/strand/record-type.js'
import type { Draft } from '../shard/commit-group.js'

/** The rules for drafts. */
export interface DraftRules {
  recordBytesMax: number
  signing: Signing
  /** The drafts came by an ingest route. */
  ingested?: boolean
  /** Integers beyond ±(2^53-1) are kept as strings. */
  largeAsText?: boolean
}

/** The members of one `{data, type?}`. */
const recordMembers = new Set(['data', 'type'])

/** A value that is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A fault of the request's body at a JSON pointer. */
export function faulty(pointer: string, detail: string): Refusal {
  return refuse('validation_failed', detail, { faults: [{ pointer, code: 'validation_failed', detail }] })
}

/** The draft of one request body `{data, type?}`. */
export function readDraft(bytes: Uint8Array, rules: DraftRules): Draft | Refusal {
  const parsed = readJson(bytes, limits.nestingDepthMax + 1)
  return 'code' in parsed ? parsed : draftOf(parsed.value, '', rules)
}

/** The draft of one body that stands by itself: a JSON object of user type `record`. */
export function readBareDraft(bytes: Uint8Array, rules: DraftRules): Draft | Refusal {
  const parsed = readJson(bytes, limits.nestingDepthMax, { largeAsText: rules.largeAsText === true })
  return 'code' in parsed ? parsed : draftOfData({ data: parsed.value, type: defaultRecordType }, '', rules)
}

/** The draft of one CloudEvent of binary mode: its attributes, and the body as its data, in the JSON format of events. */
export function readEvent(
  body: Uint8Array,
  { attributes, data }: EventHead,
  rules: DraftRules,
): Draft | Refusal {
  const type = defaultRecordType
  if (body.length === 0) return draftOfData({ data: attributes, type }, '', rules)
  if (data === 'json') {
    const parsed = readJson(body, limits.nestingDepthMax - 1, { largeAsText: rules.largeAsText === true })
    if ('code' in parsed) return parsed
    return draftOfData({ data: { ...attributes, data: parsed.value }, type }, '', rules)
  }
  const raw = asBuffer(body)
  const held =
    data === 'text' && isUtf8(raw) ? { data: raw.toString() } : { data_base64: raw.toString('base64') }
  return draftOfData({ data: { ...attributes, ...held }, type }, '', rules)
}

/** The draft of one `{data, type?}` that stands at `pointer` of a request's body. */
export function draftOf(value: unknown, pointer: string, rules: DraftRules): Draft | Refusal {
  if (!isObject(value)) return faulty(pointer, 'Expected an object with the member data')
  for (const member of Object.keys(value)) {
    if (!recordMembers.has(member))
      return faulty(`${pointer}/${escapePointer(member)}`, 'Expected only data and type')
  }
  const { type = defaultRecordType } = value
  if (typeof type !== 'string' || !isRecordType(type)) {
    return faulty(`${pointer}/type`, 'Expected a record type of 1 to 64 characters out of a-z 0-9 _ . / -')
  }
  if (isReservedType(type)) {
    const detail = 'Expected a type that does not begin with sys/, auth/ or edge/'
    return refuse('reserved_type', detail, {
      faults: [{ pointer: `${pointer}/type`, code: 'reserved_type', detail }],
    })
  }
  return draftOfData({ data: value['data'], type }, `${pointer}/data`, rules)
}

function draftOfData(
  { data, type }: { data: unknown; type: string },
  pointer: string,
  rules: DraftRules,
): Draft | Refusal {
  if (!isObject(data)) return faulty(pointer, 'Expected a JSON object')
  const body = Buffer.from(canonicalJson(data))
  if (body.length > rules.recordBytesMax) {
    return refuse(
      'too_large',
      `Expected a record of at most ${rules.recordBytesMax} bytes, got ${body.length}`,
    )
  }
  return { type, body, signing: rules.signing, ingested: rules.ingested === true }
}

/** RFC 6901: `~` and `/` in a member's name. */
function escapePointer(member: string): string {
  return member.replaceAll('~', '~0').replaceAll('/', '~1')
}
