import { fromJson, toBinary, type JsonObject } from '@bufbuild/protobuf'
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire'
import { schemas } from '../../../workers/otlp/messages.js'

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
  const request = new BinaryWriter()
  for (const { resource, scope, records } of groups) {
    const ofScope = new BinaryWriter()
    if (scope) ofScope.uint32(tag(1)).bytes(toBinary(schemas.scope, fromJson(schemas.scope, scope)))
    for (const record of records) ofScope.uint32(tag(2)).bytes(recordWire(signal, record))
    const ofResource = new BinaryWriter()
    if (resource)
      ofResource.uint32(tag(1)).bytes(toBinary(schemas.resource, fromJson(schemas.resource, resource)))
    request.uint32(tag(1)).bytes(ofResource.uint32(tag(2)).bytes(ofScope.finish()).finish())
  }
  return request.finish()
}

/** The tag of a field of bytes. */
export const tag = (number: number): number => (number << 3) | 2

function recordWire(signal: Signal, record: JsonObject): Uint8Array {
  const named = Object.entries(record).map(([name, value]) => [
    name,
    name.endsWith('Id') ? base64(value) : value,
  ])
  return toBinary(schemas[signal], fromJson(schemas[signal], Object.fromEntries(named)))
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
