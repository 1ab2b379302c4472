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
import { assert } from '../../src/base/assert.js'
import { RefusedError, refuse } from '../../src/base/errors.js'
import { GatheredBytes } from '../../src/base/gathered-bytes.js'
import { limits } from '../../src/base/limits/limits.js'
import { readJson } from '../../src/strand/json.js'
import { otlpDescriptors } from './descriptors.js'

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
  all(field: Field): Iterable<OtlpMessage>
  /** Empty if absent. */
  text(field: Field): string
  /** Its canonical OTLP JSON, the same for both encodings. Members that the schema lacks are left out. */
  json(schema: DescMessage): JsonObject
  /** Its bytes as received; in JSON, without the white space. */
  bytes(): Uint8Array
  /** Bytes as received; of JSON, without the white space and as if all characters were ASCII. */
  size: number
}

/** The message of a request. Throws RefusedError, as all reading does, for what is not a message. */
export function messageOf(encoding: 'json' | 'protobuf', body: Uint8Array): OtlpMessage {
  // The library decodes no text in memory that threads share.
  const own = Buffer.from(body)
  if (encoding === 'protobuf') return new WireMessage(own)
  const read = readJson(own, limits.otlpDepthMax, { largeAsText: true, anyText: true })
  if ('code' in read) throw new RefusedError(read)
  return new JsonMessage(read.value)
}

class WireMessage implements OtlpMessage {
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get size(): number {
    return this.#bytes.length
  }

  /** Occurrences of one message are merged, which in protobuf is to join their bytes. */
  one(field: Field): OtlpMessage | undefined {
    let joined: GatheredBytes | undefined
    for (const bytes of this.#occurrences(field)) {
      joined ??= new GatheredBytes()
      joined.add(bytes)
    }
    return joined && new WireMessage(joined.bytes)
  }

  *all(field: Field): Iterable<OtlpMessage> {
    for (const bytes of this.#occurrences(field)) yield new WireMessage(bytes)
  }

  text(field: Field): string {
    let last: Uint8Array | undefined
    for (const bytes of this.#occurrences(field)) last = bytes
    return last === undefined ? '' : decoded(() => utf8.decode(last))
  }

  json(schema: DescMessage): JsonObject {
    return jsonOf(
      schema,
      decoded(() => fromBinary(schema, this.#bytes, { readUnknownFields: false })),
    )
  }

  bytes(): Uint8Array {
    return this.#bytes
  }

  *#occurrences({ number }: Field): Generator<Uint8Array> {
    const reader = new BinaryReader(this.#bytes)
    while (reader.pos < reader.len) {
      const bytes = decoded(() => fieldBytes(reader, number))
      if (bytes !== undefined) yield bytes
    }
  }
}

/** Reads a field. @returns its bytes, if it has the number and bytes */
function fieldBytes(reader: BinaryReader, number: number): Uint8Array | undefined {
  const [found, type] = reader.tag()
  if (found === number && type === WireType.LengthDelimited) return reader.bytes()
  reader.skip(type, found, limits.otlpDepthMax)
  return undefined
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

class JsonMessage implements OtlpMessage {
  readonly #value: unknown

  constructor(value: unknown) {
    this.#value = value
  }

  get size(): number {
    return JSON.stringify(this.#value).length
  }

  one({ name }: Field): OtlpMessage | undefined {
    const value = this.#object()[name]
    return value === undefined || value === null ? undefined : new JsonMessage(value)
  }

  *all({ name }: Field): Iterable<OtlpMessage> {
    const value = this.#object()[name] ?? []
    if (!Array.isArray(value)) throw malformed(`${name} is not an array`)
    for (const item of value) yield new JsonMessage(item)
  }

  text({ name }: Field): string {
    const value = this.#object()[name] ?? ''
    if (typeof value !== 'string') throw malformed(`${name} is not a string`)
    return value
  }

  json(schema: DescMessage): JsonObject {
    const value = this.#object()
    return jsonOf(
      schema,
      decoded(() => fromJson(schema, withIds(value, base64OfHex), { ignoreUnknownFields: true })),
    )
  }

  bytes(): Uint8Array {
    return Buffer.from(JSON.stringify(this.#value))
  }

  #object(): JsonObject {
    if (!isObject(this.#value)) throw malformed('a message is not an object')
    return this.#value
  }
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
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
    throw malformed(error instanceof Error ? error.message : String(error))
  }
}

/** Characters of the reason in an error, which may quote the request. */
const REASON_CHARS = 200

function malformed(reason: string): RefusedError {
  return new RefusedError(
    refuse('validation_failed', `Expected an OTLP message: ${reason.slice(0, REASON_CHARS)}`),
  )
}

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
