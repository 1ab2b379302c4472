import {
  create,
  createFileRegistry,
  fromBinary,
  fromJson,
  toJson,
  type DescMessage,
  type JsonObject,
  type JsonValue,
} from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import {
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  type DescriptorProto,
} from '@bufbuild/protobuf/wkt'
import { BRACE_OPEN, BRACKET_OPEN, COMMA, LOWER_N } from '../base/ascii.js'
import { assert } from '../base/assert.js'
import { asBuffer } from '../base/bytes.js'
import { RefusedError, refuse } from '../base/errors.js'
import { GatheredBytes } from '../base/gathered-bytes.js'
import { limits } from '../base/limits/limits.js'
import { grammarFault, readJson } from '../strand/json.js'
import { itemEnd, spaceEnd, stringEnd, stringText } from '../strand/json-scanner.js'
import { otlpDescriptors } from './descriptors.js'
import { checkNumbers, checkWire, skipField } from './strictness.js'

/** A field of a message: its number in protobuf and its name in JSON. */
export interface Field {
  number: number
  name: string
}

/**
 * A message in either encoding, of which only the parts that are read are decoded: records one by one, so
 * that an invalid one is refused by itself, and a small body cannot become millions of objects.
 */
export interface OtlpMessage {
  one(field: Field): OtlpMessage | undefined
  /** @param from the `offset` of the first one that is read */
  all(field: Field, from?: number): Iterable<OtlpMessage>
  /** Empty if absent. */
  text(field: Field): string
  /**
   * Its canonical OTLP JSON, the same for both encodings. Members that the schema lacks are left out. A message
   * with too many fields is refused before it is decoded.
   */
  json(schema: DescMessage): JsonObject
  /** Its bytes as received. */
  bytes: Uint8Array
  /** Where it begins in the body; in protobuf with the tag of its field. */
  offset: number
}

/**
 * The message of a request. Throws RefusedError, as all reading does, for what is not a message.
 * @param known `isChecked`: whether this was called for the body before; `ends`: of large values of JSON, by
 * their offsets, to which those that are found are added
 */
export function messageOf(
  encoding: 'json' | 'protobuf',
  body: Uint8Array,
  { isChecked = false, ends = new Map() }: { isChecked?: boolean; ends?: Map<number, number> } = {},
): OtlpMessage {
  if (encoding === 'protobuf') return new WireMessage(body)
  const text = asBuffer(body)
  const fault = isChecked ? undefined : grammarFault(text, limits.otlpJsonDepthMax)
  if (fault !== undefined) throw new RefusedError(fault)
  return new JsonMessage(text.subarray(spaceEnd(text, 0)), ends)
}

class WireMessage implements OtlpMessage {
  readonly bytes: Uint8Array
  readonly offset: number

  constructor(bytes: Uint8Array, offset = 0) {
    this.bytes = bytes
    this.offset = offset
  }

  /** Occurrences of one message are merged, which in protobuf is to join their bytes. */
  one(field: Field): OtlpMessage | undefined {
    let joined: GatheredBytes | undefined
    for (const { bytes } of this.#occurrences(field)) {
      joined ??= new GatheredBytes()
      joined.add(bytes)
    }
    return joined && new WireMessage(joined.bytes)
  }

  *all(field: Field, from?: number): Iterable<OtlpMessage> {
    for (const { bytes, offset } of this.#occurrences(field, from)) yield new WireMessage(bytes, offset)
  }

  text(field: Field): string {
    let last: Uint8Array | undefined
    for (const { bytes } of this.#occurrences(field)) last = bytes
    return last === undefined ? '' : decoded(() => utf8.decode(last))
  }

  json(schema: DescMessage): JsonObject {
    checkCount(decoded(() => checkWire(schema, this.bytes, limits.otlpFieldsMax)))
    return decoded(() => jsonOf(schema, fromBinary(schema, this.bytes, { readUnknownFields: false })))
  }

  *#occurrences({ number }: Field, from?: number): Generator<{ bytes: Uint8Array; offset: number }> {
    const { byteOffset } = this.bytes
    const reader = new BinaryReader(this.bytes)
    if (from !== undefined) reader.pos = from - byteOffset
    try {
      while (reader.pos < reader.len) {
        const offset = byteOffset + reader.pos
        const [found, type] = reader.tag()
        if (found !== number) skipField(reader, { type, number: found, depthMax: limits.otlpDepthMax })
        else if (type === WireType.LengthDelimited) yield { bytes: reader.bytes(), offset }
        else throw new Error(`field ${number} has the wire type ${type}`)
      }
    } catch (error) {
      throw malformedBy(error)
    }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The members beside those that lists of messages have, which every message may have. */
const besideLists = new Set(['resource', 'scope', 'schemaUrl'])

/** JSON whose grammar was checked. Its members are found in its text, so that each record is read by itself. */
class JsonMessage implements OtlpMessage {
  readonly bytes: Buffer
  readonly #ends: Map<number, number>

  constructor(bytes: Buffer, ends: Map<number, number>) {
    this.bytes = bytes
    this.#ends = ends
  }

  get offset(): number {
    return this.bytes.byteOffset
  }

  one({ name }: Field): OtlpMessage | undefined {
    const { value } = this.#member(name)
    return value && new JsonMessage(value, this.#ends)
  }

  /** The name of a list may be spelled otherwise, as by protoc, or be that of another signal or version. */
  *all({ name }: Field, from?: number): Iterable<OtlpMessage> {
    const items = from === undefined ? this.#list(name) : this.#items(from - this.offset)
    for (const item of items) yield new JsonMessage(item, this.#ends)
  }

  #list(name: string): Iterable<Buffer> {
    const { value, other } = this.#member(name)
    if (value === undefined) {
      if (other !== undefined) throw malformed(`the member ${name} is missing, got ${other}`)
      return []
    }
    if (value[0] !== BRACKET_OPEN) throw malformed(`${name} is not an array`)
    return this.#items(value.byteOffset + 1 - this.offset)
  }

  text({ name }: Field): string {
    const { value } = this.#member(name)
    const text = value === undefined ? '' : valueOf(value)
    if (typeof text !== 'string') throw malformed(`${name} is not a string`)
    return text
  }

  json(schema: DescMessage): JsonObject {
    const value = valueOf(this.bytes)
    if (!isObject(value)) throw notAnObject
    checkCount(valuesIn(value, limits.otlpFieldsMax))
    return decoded(() => {
      checkNumbers(schema, value)
      return jsonOf(schema, fromJson(schema, withIds(value, base64OfHex), { ignoreUnknownFields: true }))
    })
  }

  /** A member that is not null, and the name of one that is neither this one nor allowed beside it. */
  #member(name: string): { value: Buffer | undefined; other: string | undefined } {
    if (this.bytes[0] !== BRACE_OPEN) throw notAnObject
    let found: Buffer | undefined
    let other: string | undefined
    for (const member of this.#items(1)) {
      const nameEnd = stringEnd(member, 0)
      const memberName = stringText(member, 0, nameEnd) ?? ''
      if (memberName === name) {
        if (found !== undefined) throw malformed(`the member ${name} is repeated`)
        found = member.subarray(spaceEnd(member, spaceEnd(member, nameEnd) + 1))
      } else if (!besideLists.has(memberName)) other ??= memberName
    }
    return { value: found?.[0] === LOWER_N ? undefined : found, other }
  }

  /** The members of an object, or the items of an array in it, that begin at `start`. */
  *#items(start: number): Generator<Buffer> {
    const { bytes, offset } = this
    for (let at = start; ; at++) {
      const from = spaceEnd(bytes, at)
      at = (this.#ends.get(offset + from) ?? offset + itemEnd(bytes, from)) - offset
      if (at - from > LARGE_BYTES) this.#ends.set(offset + from, offset + at)
      if (at > from) yield bytes.subarray(from, at)
      if (bytes[at] !== COMMA) return
    }
  }
}

/** A larger value is not scanned again to find its end. */
const LARGE_BYTES = 65_536

function valueOf(text: Buffer): unknown {
  const read = readJson(text, limits.otlpDepthMax, { largeAsText: true, anyText: true })
  if ('code' in read) throw new RefusedError(read)
  return read.value
}

/** Counts the values in an array or object, and in those in it; their depth is limited. */
function valuesIn(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  for (const inner of Object.values(value)) {
    count += 1 + valuesIn(inner, most - count)
    if (count > most) break
  }
  return count
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function checkCount(count: number): void {
  assertAtMost(limits.otlpFieldsMax, count, 'fields in a record')
}

/** @throws RefusedError if there are more than `most` */
export function assertAtMost(most: number, count: number, what: string): void {
  if (count > most) throw new RefusedError(refuse('too_large', `Expected at most ${most} ${what}`))
}

/** Ids are hex, unlike other bytes (OTLP Specification, JSON Protobuf Encoding). */
function jsonOf(schema: DescMessage, message: ReturnType<typeof fromBinary>): JsonObject {
  const json = toJson(schema, message)
  assert(isObject(json), 'the JSON of a message is an object')
  return withIds(json, hexOfBase64)
}

const idNames = ['traceId', 'spanId', 'parentSpanId']

/** Converts the ids of a record, and those of its links. */
function withIds(record: JsonObject, convert: (id: string) => string): JsonObject {
  const converted = { ...record }
  for (const name of idNames) {
    const id = record[name]
    if (typeof id === 'string') converted[name] = convert(id)
  }
  const { links } = record
  if (Array.isArray(links))
    converted['links'] = links.map((link: JsonValue) => (isObject(link) ? withIds(link, convert) : link))
  return converted
}

function base64OfHex(hex: string): string {
  if (!/^(?:[\da-f]{2})*$/i.test(hex)) throw new Error('an id is not hex')
  return Buffer.from(hex, 'hex').toString('base64')
}

function hexOfBase64(base64: string): string {
  return Buffer.from(base64, 'base64').toString('hex')
}

/** Decodes with the library, whose errors are faults of the request. */
function decoded<Found>(decode: () => Found): Found {
  try {
    return decode()
  } catch (error) {
    throw malformedBy(error)
  }
}

function malformedBy(error: unknown): RefusedError {
  return malformed(error instanceof Error ? error.message : String(error))
}

/** Characters of the reason in an error, which may quote the request. */
const REASON_CHARS = 200

function malformed(reason: string): RefusedError {
  // The request can have lone surrogates, and the cut can leave one.
  const shown = reason.slice(0, REASON_CHARS).toWellFormed()
  return new RefusedError(refuse('validation_failed', `Expected an OTLP message: ${shown}`))
}

const notAnObject = malformed('a message is not an object')

/** The messages that records consist of, by what they describe. */
export const schemas = schemasOf()

function schemasOf(): Record<'resource' | 'scope' | 'logs' | 'traces', DescMessage> {
  const file = otlpDescriptors.map((base64) =>
    fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, 'base64')),
  )
  for (const { messageType } of file) for (const message of messageType) adapt(message)
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }))
  const schemaOf = (name: string) => {
    const schema = registry.getMessage(`opentelemetry.proto.${name}`)
    assert(schema !== undefined, `OTLP has the message ${name}`)
    return schema
  }
  return {
    resource: schemaOf('resource.v1.Resource'),
    scope: schemaOf('common.v1.InstrumentationScope'),
    logs: schemaOf('logs.v1.LogRecord'),
    traces: schemaOf('trace.v1.Span'),
  }
}

/**
 * Makes the messages those of OTLP JSON: fields have only their names in lowerCamelCase, and enums are
 * numbers (OTLP Specification, JSON Protobuf Encoding).
 */
function adapt({ field: all, nestedType }: DescriptorProto): void {
  for (const field of all) {
    field.name = field.name.replaceAll(/_(\w)/g, (_match, letter: string) => letter.toUpperCase())
    field.jsonName = field.name
    if (field.type !== FieldDescriptorProto_Type.ENUM) continue
    field.type = FieldDescriptorProto_Type.INT32
    field.typeName = ''
  }
  for (const message of nestedType) adapt(message)
}
