import { gunzipSync } from 'node:zlib'
import type { JsonObject, JsonValue } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import type { OtlpPart, OtlpTask } from '../../../src/otlp/tasks.js'
import { readJson } from '../../../src/strand/json.js'
import { otlpPart } from '../../../workers/otlp.js'
import { fc } from '../../support/fast-check.js'
import { collectorLogs, collectorSpans } from '../../support/http/collector.js'
import { otlpJson, otlpWire, service, wireField } from '../../support/http/otlp.js'
import { runSeed } from '../../support/run-seed.js'

const seed = runSeed('otlp-lines')

const taskOf = (
  encoding: OtlpTask['encoding'],
  body: Uint8Array,
  signal: OtlpTask['signal'] = 'logs',
): OtlpTask => ({
  body,
  encoding,
  signal,
  linesBytesMax: 200_000,
  recordBytesMax: 100_000,
  keeps: true,
})

const decode = (...given: Parameters<typeof taskOf>) => otlpPart(taskOf(...given))

/** All parts of a request that is one; throws otherwise. */
function partsOf(task: OtlpTask): OtlpPart[] {
  const part = otlpPart(task)
  if (!('lines' in part)) throw new Error(part.detail)
  return part.next === undefined ? [part] : [part, ...partsOf({ ...task, from: part.next })]
}

const textOf = (parts: readonly OtlpPart[]) => Buffer.concat(parts.map(({ lines }) => lines)).toString()

/** The lines of a request that is one, in one part; throws otherwise. */
function linesOf(found: ReturnType<typeof decode>): string[] {
  if (!('lines' in found)) throw new Error(found.detail)
  expect([found.refused, found.next]).toEqual([[], undefined])
  return textOf([found]).split('\n')
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

/** An id, which is never all zero. */
const hex = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes - 1, maxLength: bytes - 1 })
    .map((rest) => Buffer.of(1, ...rest).toString('hex'))

const attributes = fc.array(fc.record({ key: text, value: anyValue }), { maxLength: 4 })
const described = { attributes, droppedAttributesCount: fc.nat() }
const ids = { traceId: hex(16), spanId: hex(8) }

const logRecord = fc.record<JsonObject>(
  {
    ...described,
    ...ids,
    timeUnixNano: nanos,
    severityNumber: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    severityText: text,
    body: anyValue,
    flags: fc.nat(),
    eventName: text,
  },
  { requiredKeys: [] },
)

const span = fc.record<JsonObject>(
  {
    ...described,
    ...ids,
    parentSpanId: hex(8),
    traceState: text,
    name: text,
    kind: fc.nat({ max: 5 }),
    startTimeUnixNano: nanos,
    endTimeUnixNano: nanos,
    events: fc.array(fc.record({ ...described, timeUnixNano: nanos, name: text }), { maxLength: 2 }),
    links: fc.array(fc.record({ ...described, ...ids, flags: fc.nat() }), { maxLength: 2 }),
    status: fc.record({ code: fc.nat({ max: 2 }), message: text }),
  },
  { requiredKeys: ['traceId', 'spanId'] },
)

const requests = fc.oneof(
  fc.record({ signal: fc.constant('logs' as const), records: fc.array(logRecord, { maxLength: 5 }) }),
  fc.record({ signal: fc.constant('traces' as const), records: fc.array(span, { maxLength: 5 }) }),
)

describe('the lines of a request', () => {
  it('are the same for protobuf and JSON, and strict JSON', () => {
    fc.assert(
      fc.property(requests, text, ({ signal, records }, name) => {
        const groups = [{ resource: service(name), scope: { name }, records }]
        const body = Buffer.from(JSON.stringify(otlpJson(signal, groups)))
        const json = linesOf(decode('json', body, signal))
        expect(json).toEqual(linesOf(decode('protobuf', otlpWire(signal, groups), signal)))
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

  it('are refused if they are 64-bit integers whose digits a double cannot hold', () => {
    for (const [literal, exact] of [
      ['9007199254740993.0', false],
      ['1.785603000123456789e18', false],
      ['9007199254740991.0', true],
    ] as const) {
      const body = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":${literal}}]}]}]}`
      const found = decode('json', Buffer.from(body))
      expect([literal, 'lines' in found && found.refused.length]).toEqual([literal, exact ? 0 : 1])
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
        else {
          // A change can make several records of one. Each refused record is on another line.
          const numbers = found.refused.map(({ line }) => line)
          expect(numbers).toEqual([...new Set(numbers)])
          expect(Math.max(0, ...numbers)).toBeLessThan(textOf([found]).split('\n').length)
        }
      }),
      { seed, numRuns: 2_000 },
    )
  })
})

describe('the parts of a request', () => {
  const groups = ['one', 'two', 'one'].map((name) => ({
    resource: service(name),
    scope: { name: 'ä'.repeat(100) },
    records: Array.from({ length: 300 }, (_none, n) => ({ severityNumber: n, body: { stringValue: name } })),
  }))

  it('have the same lines as the whole, and no more bytes than allowed', () => {
    for (const task of [
      taskOf('protobuf', otlpWire('logs', groups)),
      taskOf('json', Buffer.from(JSON.stringify(otlpJson('logs', groups)))),
    ]) {
      const [whole, ...more] = partsOf({ ...task, linesBytesMax: limits.otlpPartBytesMax })
      const parts = partsOf({ ...task, linesBytesMax: 10_000, recordBytesMax: 5_000 })
      expect([more.length, textOf(parts)]).toEqual([0, whole && textOf([whole])])
      expect(parts.length).toBeGreaterThan(30)
      for (const { lines } of parts) expect(lines.length).toBeLessThanOrEqual(10_000)
    }
  })

  // 8 MiB of JSON took six times the processor time of the same request in protobuf.
  it('are read without the records of earlier parts, if they are JSON', () => {
    const records = Array.from({ length: 2_000 }, () => ({ body: { stringValue: 'x'.repeat(100) } }))
    const text = JSON.stringify(otlpJson('logs', [{ resource: service('first'), records }]))
    // The last members of the scope and of the resource are behind the records.
    const body = Buffer.from(text.replace(/\]\}\]\}\]\}$/, '],"schemaUrl":"a"}],"schemaUrl":"b"}]}'))
    const parts: OtlpPart[] = []
    for (let from: OtlpPart['next']; parts.length === 0 || from !== undefined;) {
      const part = otlpPart({ ...taskOf('json', body), ...(from && { from }) })
      if (!('lines' in part)) throw new Error(part.detail)
      parts.push(part)
      from = part.next
      if (from !== undefined) body.fill('"', body.indexOf('"logRecords":[') + 14, from.offsets.at(-1))
    }
    expect(parts.length).toBeGreaterThan(2)
    const lines = textOf(parts).trim().split('\n')
    expect([lines.length, new Set(lines).size]).toEqual([2_000, 1])
    expect(lines.at(-1)).toMatch(/"resourceSchemaUrl":"b","scopeSchemaUrl":"a"\}\}$/)
  })

  it('have any line that is not refused', () => {
    const records = Array.from({ length: 100 }, (_none, n) => ({
      body: { stringValue: 'x'.repeat(900 + n) },
    }))
    const task = {
      ...taskOf('protobuf', otlpWire('logs', [{ records }])),
      recordBytesMax: 1_050,
      linesBytesMax: 1_050,
    }
    const parts = partsOf(task)
    const refused = parts.flatMap((part) => part.refused)
    expect(refused.length).toBeGreaterThan(0)
    expect(Math.max(...parts.map(({ lines }) => lines.length))).toBe(1_050)
    expect(textOf(parts).split('\n')).toHaveLength(101)
  })

  it('end with the bytes that a thread reads in one task', () => {
    const records = Array.from({ length: 30 }, () => ({ body: { stringValue: 'x'.repeat(90_000) } }))
    const task = { ...taskOf('protobuf', otlpWire('logs', [{ records }])), linesBytesMax: 100_000_000 }
    expect(partsOf(task).length).toBe(Math.ceil(30 / Math.floor(limits.otlpPartReadBytesMax / 90_020)))
  })

  it('refuse any number of records by themselves, each with its number in the request and its bytes', () => {
    const [bad, good] = [Buffer.from('1a02c328', 'hex'), Buffer.from('1001', 'hex')]
    const records = [...Array.from({ length: 2_500 }, () => bad), good]
    const body = wireField(1, wireField(2, Buffer.concat(records.map((record) => wireField(2, record)))))
    const parts = partsOf(taskOf('protobuf', body))
    const refused = parts.flatMap((part) => part.refused)
    expect(refused.map(({ line }) => line)).toEqual(Array.from({ length: 2_500 }, (_none, n) => n + 1))
    expect(refused.every(({ bytes }) => bad.equals(bytes))).toBe(true)
    expect(textOf(parts).trim().split('\n')).toHaveLength(1)
  })

  it('do not return refused records that are too large to be stored', () => {
    const large = Buffer.alloc(limits.ingestAtomicBytesMax, 'x')
    const records = [large, large.subarray(64)].map((bytes) => wireField(2, wireField(3, bytes)))
    const task = taskOf('protobuf', wireField(1, wireField(2, Buffer.concat(records))))
    const sizes = partsOf(task).flatMap(({ refused }) => refused.map(({ bytes }) => bytes.length))
    expect(sizes).toEqual([0, large.length - 59])
  })
})

describe('a record with too many fields', () => {
  const empty = { stringValue: '' }
  const values = Array.from({ length: limits.otlpFieldsMax }, () => empty)
  const records = [
    { severityNumber: 1 },
    { attributes: [...values, empty].map(() => ({})) },
    { body: { arrayValue: { values } } },
    { body: { kvlistValue: { values: [{ value: { arrayValue: { values } } }] } } },
  ]

  it('is refused by itself, however they nest', () => {
    const json = Buffer.from(JSON.stringify(otlpJson('logs', [{ records }])))
    const tasks = [taskOf('protobuf', otlpWire('logs', [{ records }])), taskOf('json', json)]
    for (const task of tasks) {
      const [part] = partsOf({ ...task, recordBytesMax: 1_000_000, linesBytesMax: 1_000_000 })
      expect(part?.refused.map(({ line, code, detail }) => [line, code, detail])).toEqual(
        [2, 3, 4].map((line) => [
          line,
          'too_large',
          `Expected at most ${limits.otlpFieldsMax} fields in a record`,
        ]),
      )
    }
  })
})
