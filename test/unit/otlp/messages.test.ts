import { describe, expect, it } from 'vitest'
import type { JsonObject } from '@bufbuild/protobuf'
import { messageOf, schemas } from '../../../src/otlp/messages.js'
import { wireField } from '../../support/http/otlp.js'

const bytes = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex')

/** The JSON of a log record in protobuf, or why it is refused. */
function read(record: Uint8Array): JsonObject | string {
  try {
    return messageOf('protobuf', record).json(schemas.logs)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

describe('a log record in protobuf', () => {
  it('is read as protoc reads it', () => {
    const records: [what: string, hex: string, json: JsonObject][] = [
      ['the last of two scalars', '1001 1002', { severityNumber: 2 }],
      ['the last of two alternatives', '2a03 0a0161  2a02 1001', { body: { boolValue: true } }],
      [
        'lists in parts of one message',
        '2a06 2a04 0a02 1001  2a06 2a04 0a02 1000',
        { body: { arrayValue: { values: [{ boolValue: true }, { boolValue: false }] } } },
      ],
      ['a default value, which JSON leaves out', '1000 1a00', {}],
      ['a value without alternative', '2a00', { body: {} }],
      ['a varint with more bytes than it needs', '108180808000', { severityNumber: 1 }],
      ['a negative number of ten bytes', '10ffffffffffffffffff01', { severityNumber: -1 }],
      ['unknown fields of each wire type', 'f80101 f90108080808 08080808 fa010161 fd0101010101', {}],
      ['an unknown group in a group', 'fb01 0b 0c fc01', {}],
      ['ids of other lengths', '4a0108 520208ff', { traceId: '08', spanId: '08ff' }],
      ['an unknown field of an id, which is bytes', `4a10${'08'.repeat(16)}`, { traceId: '08'.repeat(16) }],
    ]
    for (const [what, hex, json] of records) expect([what, read(bytes(hex))]).toEqual([what, json])
  })

  it('is refused if protoc refuses it, or if a field has another type', () => {
    const corrupt = ['2a02 0a05', '2a020a05 6161616161', '2a05 2a01 0a021001', '2a02 fb01', '2a05 fb01fc0110']
    const malformed = ['10', '10ffffffffffffffffffff01', '00', '0b', '0c', 'fb01 0c', '1a02 c328']
    for (const hex of [...corrupt, ...malformed])
      expect([hex, read(bytes(hex))]).toEqual([hex, expect.stringMatching(/^Expected an OTLP message: /)])
    const mistyped: [hex: string, reason: string][] = [
      ['2a05 2a01 0a021001', 'field 1 of ArrayValue exceeds its message'],
      ['0801', 'field 1 of LogRecord has the wire type 0'],
      ['4801', 'field 9 of LogRecord has the wire type 0'],
      ['2a02 0801', 'field 1 of AnyValue has the wire type 0'],
    ]
    for (const [hex, reason] of mistyped)
      expect([hex, read(bytes(hex))]).toEqual([hex, `Expected an OTLP message: ${reason}`])
  })

  it('may nest 99 values, as with protoc', () => {
    const nested = (values: number) => {
      let value: Uint8Array = bytes('1001')
      for (let level = 1; level < values; level += 2) value = wireField(5, wireField(1, value))
      return read(wireField(5, value))
    }
    expect(nested(99)).toHaveProperty('body')
    expect(nested(101)).toMatch(/recursion depth/)
  })
})
