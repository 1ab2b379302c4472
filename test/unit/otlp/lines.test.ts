import { gunzipSync } from 'node:zlib'
import type { JsonObject, JsonValue } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import type { OtlpTask } from '../../../src/protocol/otlp-tasks.js'
import { readJson } from '../../../src/strand/json.js'
import { otlpLines } from '../../../workers/otlp.js'
import { fc } from '../../support/fast-check.js'
import { collectorLogs, collectorSpans } from '../../support/http/collector.js'
import { otlpJson, otlpWire, service } from '../../support/http/otlp.js'
import { runSeed } from '../../support/run-seed.js'

const seed = runSeed('otlp-lines')

const decode = (encoding: OtlpTask['encoding'], body: Uint8Array, signal: OtlpTask['signal'] = 'logs') =>
  otlpLines({ body, encoding, signal, recordBytesMax: 100_000, keeps: true })

/** The lines of a request that is one; throws otherwise. */
function linesOf(found: ReturnType<typeof decode>): string[] {
  if (!('lines' in found)) throw new Error(found.detail)
  expect(found.refused).toEqual([])
  return Buffer.from(found.lines).toString().split('\n')
}

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)
const nanos = fc.bigInt({ min: 1n, max: 2n ** 64n - 1n }).map(String)
const text = fc.string({ unit: 'grapheme' })

const { value: anyValue } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.record<JsonObject>({ stringValue: text }),
    fc.record<JsonObject>({ boolValue: fc.boolean() }),
    fc.record<JsonObject>({ intValue: int64 }),
    fc.record<JsonObject>({ doubleValue: fc.double({ noNaN: true, noDefaultInfinity: true }) }),
    fc.constantFrom<JsonObject>(
      { doubleValue: 'NaN' },
      { doubleValue: '-Infinity' },
      { doubleValue: 1e17 },
      {},
    ),
    fc.uint8Array().map((bytes): JsonObject => ({ bytesValue: Buffer.from(bytes).toString('base64') })),
    fc.array(tie('value'), { maxLength: 3 }).map((values): JsonObject => ({ arrayValue: { values } })),
    fc
      .array(fc.record({ key: text, value: tie('value') }), { maxLength: 3 })
      .map((values): JsonObject => ({ kvlistValue: { values } })),
  ),
}))

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((id) => Buffer.from(id).toString('hex'))

const logRecord = fc.record<JsonObject>(
  {
    timeUnixNano: nanos,
    severityNumber: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    severityText: text,
    body: anyValue,
    attributes: fc.array(fc.record({ key: text, value: anyValue }), { maxLength: 4 }),
    droppedAttributesCount: fc.nat(),
    flags: fc.nat(),
    traceId: hex(16),
    spanId: hex(8),
    eventName: text,
  },
  { requiredKeys: [] },
)

describe('the lines of a request', () => {
  it('are the same for protobuf and JSON, and strict JSON', () => {
    fc.assert(
      fc.property(fc.array(logRecord, { maxLength: 5 }), text, (records, name) => {
        const groups = [{ resource: service(name), scope: { name }, records }]
        const json = linesOf(decode('json', Buffer.from(JSON.stringify(otlpJson('logs', groups)))))
        expect(json).toEqual(linesOf(decode('protobuf', otlpWire('logs', groups))))
        expect(json.length).toBe(records.length + 1)
        for (const line of json.slice(0, -1))
          expect(readJson(Buffer.from(line), 64)).not.toHaveProperty('code')
      }),
      { seed, numRuns: 200 },
    )
  })

  it('keep the digits of 64-bit integers, as numbers and as texts', () => {
    for (const literal of ['9223372036854775807', '"9223372036854775807"']) {
      const body = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"intValue":${literal}}}]}]}]}`
      expect(linesOf(decode('json', Buffer.from(body)))[0]).toContain('"intValue":"9223372036854775807"')
    }
  })

  it('are found, or a fault is, in a message with any change', () => {
    const bodies = [
      ['logs', gunzipSync(collectorLogs)],
      ['traces', gunzipSync(collectorSpans)],
    ] as const
    const changes = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), {
      minLength: 1,
      maxLength: 4,
    })
    fc.assert(
      fc.property(fc.constantFrom(...bodies), changes, fc.nat(), ([signal, body], places, cut) => {
        const changed = Buffer.from(body.subarray(0, cut % 3 === 0 ? cut % body.length : body.length))
        for (const [at, byte] of places) if (changed.length > 0) changed[at % changed.length] = byte
        const found = decode('protobuf', changed, signal)
        if ('code' in found) expect(['validation_failed', 'too_large']).toContain(found.code)
        else expect(found.refused.length).toBeLessThanOrEqual(2)
      }),
      { seed, numRuns: 2_000 },
    )
  })
})
