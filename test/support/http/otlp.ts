import { fromJson, toBinary, type JsonObject } from '@bufbuild/protobuf'
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire'
import { isObject, schemas } from '../../../src/otlp/messages.js'

/** A group of records of one resource and scope, in OTLP JSON. */
export interface OtlpGroup {
  resource?: JsonObject
  scope?: JsonObject
  records: readonly JsonObject[]
}

type Signal = 'logs' | 'traces'

/** A resource with a `service.name`. */
export const service = (name: string): JsonObject => ({
  attributes: [{ key: 'service.name', value: { stringValue: name } }],
})

/** A request in OTLP JSON. */
export function otlpJson(signal: Signal, groups: readonly OtlpGroup[]): JsonObject {
  const [resources, scopes, records] =
    signal === 'logs' ? ['resourceLogs', 'scopeLogs', 'logRecords'] : ['resourceSpans', 'scopeSpans', 'spans']
  return {
    [resources]: groups.map(({ resource, scope, records: all }) => ({
      ...(resource && { resource }),
      [scopes]: [{ ...(scope && { scope }), [records]: [...all] }],
    })),
  }
}

/** The same request in protobuf. */
export function otlpWire(signal: Signal, groups: readonly OtlpGroup[]): Uint8Array {
  const request = groups.map(({ resource, scope, records }) => {
    const ofScope = records.map((record) => wireField(2, recordWire(signal, record)))
    if (scope) ofScope.push(wireField(1, toBinary(schemas.scope, fromJson(schemas.scope, scope))))
    const ofResource = [wireField(2, Buffer.concat(ofScope))]
    if (resource)
      ofResource.push(wireField(1, toBinary(schemas.resource, fromJson(schemas.resource, resource))))
    return wireField(1, Buffer.concat(ofResource))
  })
  return Buffer.concat(request)
}

/** The tag of a field of bytes. */
const tag = (number: number): number => (number << 3) | 2

/** A field of bytes. */
export function wireField(number: number, bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().uint32(tag(number)).bytes(bytes).finish()
}

/** A log record or span in protobuf. */
export function recordWire(signal: Signal, record: JsonObject): Uint8Array {
  return toBinary(schemas[signal], fromJson(schemas[signal], withBase64Ids(record)))
}

/** Ids are base64 in the JSON of protobuf, those of links too. */
function withBase64Ids(record: JsonObject): JsonObject {
  const named = Object.entries(record).map(([name, value]) => {
    if (name === 'links' && Array.isArray(value))
      return [name, value.map((link) => (isObject(link) ? withBase64Ids(link) : link))]
    return [name, name.endsWith('Id') ? base64(value) : value]
  })
  return Object.fromEntries(named)
}

const base64 = (hex: unknown): string => Buffer.from(String(hex), 'hex').toString('base64')

/** The texts of the fields of bytes of a message, by number; those of partial_success begin at its content. */
export function fieldsOf(bytes: Uint8Array): Map<number, Uint8Array | number> {
  const reader = new BinaryReader(bytes)
  const found = new Map<number, Uint8Array | number>()
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag()
    found.set(number, type === 2 ? reader.bytes() : Number(reader.int64()))
  }
  return found
}
