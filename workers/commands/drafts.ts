import { isUtf8 } from 'node:buffer'
import { asBuffer } from '../../src/base/bytes.js'
import { assert } from '../../src/base/assert.js'
import { refuse, type Fault, type Refusal } from '../../src/base/errors.js'
import { missingMember, pointerTo, refuseAll } from '../../src/base/faults.js'
import { limits } from '../../src/base/limits/limits.js'
import type { Signing } from '../../src/protocol/command-options.js'
import type { EventHead } from '../../src/protocol/record-messages.js'
import { locateFault } from '../../src/strand/json-fault.js'
import { canonicalJson, readJson } from '../../src/strand/json.js'
import { defaultRecordType, isRecordType, isReservedType } from '../../src/strand/record-type.js'
import type { Draft } from '../shard/commit-group.js'

export interface DraftRules {
  recordBytesMax: number
  signing: Signing
  /** The drafts arrived over an ingest route. */
  ingested?: boolean
  /** Integers beyond ±(2^53-1) are stored as strings. */
  largeAsText?: boolean
}

/** The members of a record `{data, type?}`. */
const recordMembers = new Set(['data', 'type'])

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A refusal for a fault of the request body at a JSON pointer. */
export function faulty(pointer: string, detail: string): Refusal {
  return refuse('validation_failed', detail, { faults: [{ pointer, code: 'validation_failed', detail }] })
}

/** The draft of a request body `{data, type?}`. */
export function readDraft(bytes: Uint8Array, rules: DraftRules): Draft | Refusal {
  const parsed = readJson(bytes, limits.nestingDepthMax + 1)
  return 'code' in parsed ? locateFault(bytes, parsed) : draftOf(parsed.value, '', rules)
}

/** The draft of a body that is the data itself: a JSON object, with type `record`. */
export function readBareDraft(bytes: Uint8Array, rules: DraftRules): Draft | Refusal {
  const parsed = readJson(bytes, limits.nestingDepthMax, { largeAsText: rules.largeAsText === true })
  return 'code' in parsed ? parsed : draftOfData({ data: parsed.value, type: defaultRecordType }, '', rules)
}

/**
 * The draft of a CloudEvent in binary mode: its attributes with the body as data, in the JSON format of
 * events.
 */
export function readEvent(
  body: Uint8Array,
  { attributes, data }: EventHead,
  rules: DraftRules,
): Draft | Refusal {
  const type = defaultRecordType
  if (body.length === 0) return draftOfData({ data: attributes, type }, '', rules)
  if (data === 'json') {
    const parsed = readJson(body, limits.nestingDepthMax - 1, { largeAsText: rules.largeAsText === true })
    if ('code' in parsed) return locateFault(body, parsed)
    return draftOfData({ data: { ...attributes, data: parsed.value }, type }, '', rules)
  }
  const raw = asBuffer(body)
  const content =
    data === 'text' && isUtf8(raw) ? { data: raw.toString() } : { data_base64: raw.toString('base64') }
  return draftOfData({ data: { ...attributes, ...content }, type }, '', rules)
}

/** The draft of a record `{data, type?}` at `pointer` of a request body, or a refusal with all its faults. */
export function draftOf(value: unknown, pointer: string, rules: DraftRules): Draft | Refusal {
  if (!isObject(value)) return faulty(pointer, 'Expected an object with the member data')
  const { data, type = defaultRecordType } = value
  const known = Object.keys(value).every((member) => recordMembers.has(member))
  if (known && isObject(data) && typeof type === 'string' && isRecordType(type) && !isReservedType(type))
    return draftOfData({ data, type }, `${pointer}/data`, rules)
  const [first, ...others] = recordFaults(value, pointer)
  assert(first !== undefined, 'an invalid record has a fault')
  return refuseAll(first, others)
}

function recordFaults(value: Record<string, unknown>, pointer: string): Fault[] {
  const code = 'validation_failed'
  const { data, type = defaultRecordType } = value
  const unknown = Object.keys(value).filter((member) => !recordMembers.has(member))
  const faults: Fault[] = unknown.slice(0, limits.faultsMax).map((member) => ({
    pointer: pointerTo(pointer, member),
    code,
    detail: 'Unknown member: expected only data and type',
  }))
  if (typeof type !== 'string' || !isRecordType(type)) {
    const detail = 'Expected a record type of 1 to 64 characters from a-z 0-9 _ . / -'
    faults.push({ pointer: `${pointer}/type`, code, detail })
  } else if (isReservedType(type)) {
    const detail = 'Expected a type that does not begin with sys/, auth/ or edge/'
    faults.push({ pointer: `${pointer}/type`, code: 'reserved_type', detail })
  }
  if (!isObject(data)) {
    const wrong = { pointer: `${pointer}/data`, code, detail: 'Expected a JSON object' } as const
    faults.push(data === undefined ? missingMember(pointer, 'data') : wrong)
  }
  return faults
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
