import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '@bufbuild/protobuf'
import { otlpRoutes } from '../../src/front/routes/otlp.js'
import { checkedCall, headOf, newAgent, scopedKey, untestedSuccesses } from '../support/http/answers.js'
import {
  collectorLogRecords,
  collectorLogs,
  collectorSpan,
  collectorSpans,
} from '../support/http/collector.js'
import {
  fieldsOf,
  otlpJson,
  otlpWire,
  recordWire,
  service,
  wireField,
  type OtlpGroup,
} from '../support/http/otlp.js'
import { call, startServer, type TestCall, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '3' } })
})
afterAll(() => server.stop())

const traceId = '5b8efff798038103d269b633813fc60c'
const log = (n: number): JsonObject => ({
  timeUnixNano: String(1785603000000000000n + BigInt(n)),
  severityNumber: 9,
})
const span = (id: number): JsonObject => ({
  traceId,
  spanId: id.toString(16).padStart(16, '0'),
  name: `tool ${id}`,
  startTimeUnixNano: '1785603000000000000',
})

type Signal = 'logs' | 'traces'

/** Sends groups in JSON. */
const sendJson = (route: string, groups: readonly OtlpGroup[], more: TestCall = {}) =>
  checkedCall(server, `POST ${route}`, { body: otlpJson(signalOf(route), groups), ...more })

const signalOf = (route: string): Signal => (route.includes('/logs') ? 'logs' : 'traces')

/** Sends bytes of protobuf. @returns the status and the fields of the answer */
async function sendBytes(route: string, raw: Uint8Array, headers: Record<string, string> = {}) {
  const request = new Request(server.url + route, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${server.rootKey}`,
      'content-type': 'application/x-protobuf',
      ...headers,
    },
    body: new Uint8Array(raw),
  })
  const answer = await fetch(request)
  expect(answer.headers.get('content-type')).toBe('application/x-protobuf')
  const fields = fieldsOf(new Uint8Array(await answer.arrayBuffer()))
  return { status: answer.status, headers: answer.headers, fields }
}

const sendWire = (route: string, groups: readonly OtlpGroup[]) =>
  sendBytes(route, otlpWire(signalOf(route), groups))

/** The rejected count and the reasons of a partial success. */
function partialOf(fields: Map<number, Uint8Array | number>): [count: number, reasons: string] {
  const partial = fieldsOf(fields.get(1) as Uint8Array)
  return [Number(partial.get(1) ?? 0), String(Buffer.from(partial.get(2) as Uint8Array))]
}

/** The records of an agent after the first. */
async function recordsOf(agent: string): Promise<{ type: string; payload: JsonObject; content: string }[]> {
  const body = { type: 'time_range', limit: 100 }
  const page = await checkedCall(server, `POST /v1/agents/${agent}/query`, { body })
  const { text } = await call(server, `GET /v1/strand/export?agent=${agent}`)
  const bodies = text
    .trim()
    .split('\n')
    .flatMap((line): string[] => JSON.parse(line).body ?? [])
  return page.body.records.map(
    ({ type, payload, seq }: { type: string; payload: JsonObject; seq: number }) => ({
      type,
      payload,
      content: bodies[seq],
    }),
  )
}
const payloadsOf = async (agent: string) => (await recordsOf(agent)).map(({ payload }) => payload)

describe('a request', () => {
  it('becomes a record for each log record or span, with its resource and scope', async () => {
    const scope = { name: 'valves', version: '1' }
    const resource = service('boiler')
    const logs = await sendJson('/v1/logs', [{ resource, scope, records: [log(1), log(2)] }])
    expect([logs.status, logs.body]).toEqual([200, {}])
    const spans = await sendJson('/v1/traces', [{ resource, scope, records: [span(1)] }])
    expect([spans.status, spans.body]).toEqual([200, {}])
    expect(await recordsOf('boiler')).toMatchObject([
      { type: 'otel/log', payload: { ...log(1), resource, scope } },
      { type: 'otel/log', payload: { ...log(2), resource, scope } },
      { type: 'otel/span', payload: { ...span(1), resource, scope } },
    ])
  })

  it('is written as the documented bytes of a Collector say', async () => {
    const headers = {
      'content-encoding': 'gzip',
      'user-agent': 'OpenTelemetry Collector/0.140.0 (linux/amd64)',
    }
    const logs = await sendBytes('/v1/logs', collectorLogs, headers)
    const spans = await sendBytes('/v1/traces', collectorSpans, headers)
    expect([logs.status, logs.fields.size, spans.status, spans.fields.size]).toEqual([200, 0, 200, 0])
    expect(await payloadsOf('checkout')).toEqual([...collectorLogRecords, collectorSpan])
  })

  it('has the same canonical bytes in protobuf and in JSON', async () => {
    const [full] = collectorLogRecords
    const {
      resource: _resource,
      scope: _scope,
      resourceSchemaUrl: _url,
      scopeSchemaUrl: _other,
      ...record
    } = full ?? {}
    const groups = (name: string) => [{ resource: service(name), records: [record, {}] }]
    await sendWire('/v1/logs', groups('same-1'))
    // Other spellings of the same values, and what OTLP leaves out or ignores.
    const spelled = {
      ...record,
      timeUnixNano: Number.MAX_SAFE_INTEGER,
      traceId: traceId.toUpperCase(),
      droppedAttributesCount: '3',
    }
    const text = JSON.stringify(
      otlpJson('logs', [
        {
          resource: service('same-2'),
          records: [{ ...spelled, severity_number: 1, unknown: { a: 1 } }, { flags: 0 }],
        },
      ]),
    ).replace(String(Number.MAX_SAFE_INTEGER), String(record['timeUnixNano']))
    await checkedCall(server, 'POST /v1/logs', { raw: text })
    const [wire, json] = [await recordsOf('same-1'), await recordsOf('same-2')]
    const withoutName = (content: string) => content.replace(/same-\d/, '')
    expect(wire.length).toBe(2)
    expect(json.map(({ content }) => withoutName(content))).toEqual(
      wire.map(({ content }) => withoutName(content)),
    )
  })

  it('can be empty, or compressed', async () => {
    expect((await sendBytes('/v1/logs', new Uint8Array())).status).toBe(200)
    expect((await sendBytes('/v1/traces', new Uint8Array())).status).toBe(200)
    for (const raw of ['{}', '{"resourceLogs":null}', '{"resourceLogs":[{"scopeLogs":[{}]}]}'])
      expect((await checkedCall(server, 'POST /v1/logs', { raw })).body).toEqual({})
    const raw = gzipSync(JSON.stringify(otlpJson('logs', [{ resource: service('zip'), records: [log(1)] }])))
    await checkedCall(server, 'POST /v1/logs', { raw, headers: { 'content-encoding': 'gzip' } })
    expect(await payloadsOf('zip')).toHaveLength(1)
  })

  it('is split over as many commits as it needs', async () => {
    const records = Array.from({ length: 3_000 }, (_none, n) => log(n))
    expect((await sendWire('/v1/logs', [{ resource: service('large'), records }])).fields.size).toBe(0)
    expect((await headOf(server, 'large'))?.record_count).toBe(3_000)
  })

  it('is refused as a whole if it is not a message', async () => {
    for (const bytes of ['ff', '0a05', '0a02ffff', '0b0a', `0a04${'12021201'}`]) {
      const { status, fields } = await sendBytes('/v1/logs', Buffer.from(bytes, 'hex'))
      expect([bytes, status]).toEqual([bytes, 400])
      expect(String(Buffer.from(fields.get(2) as Uint8Array))).toContain(
        'validation_failed: Expected an OTLP message',
      )
    }
    for (const raw of [
      '',
      '[',
      '[]',
      '1',
      '{"resourceLogs":1}',
      '{"resourceLogs":[1]}',
      '{"a":1,"a":1}',
      '{"resourceLogs":[',
    ]) {
      const { status, body } = await checkedCall(server, 'POST /v1/logs', { raw })
      expect([raw, status, body.code]).toEqual([raw, 400, 'validation_failed'])
    }
  })
})

describe('a request in JSON', () => {
  it('is written except for records that are not strict JSON', async () => {
    const deep = `{"body":${'{"arrayValue":{"values":['.repeat(900)}${']}}'.repeat(900)}}`
    const records = ['{"flags":1}', '{"flags":1e400}', '{"flags":1,"flags":2}', deep, '{"eventName":"é"} ']
    const text = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[${records.join()},{"flags":2}]}]}]}`
    // Makes "é" invalid UTF-8.
    const raw = Buffer.from(text, 'latin1')
    const { body } = await checkedCall(server, 'POST /v1/otlp/strict/v1/logs', { raw })
    expect(body.partialSuccess).toEqual({
      rejectedLogRecords: '4',
      errorMessage: expect.stringMatching(
        /^record 2: .* finite as a double; record 3: .* no duplicate keys; record 4: .* nesting; 1 more$/,
      ),
    })
    expect(await payloadsOf('strict')).toEqual([{ flags: 1 }, { flags: 2 }])
  })

  it('is refused with texts for numbers that are not JSON numbers, but not with ids of other lengths', async () => {
    const invalid = [
      ...['0x10', ' 7 ', '', '1_000', '01'].map((number) => ({ timeUnixNano: number })),
      ...['0x10', ' 7', ''].map((number) => ({ body: { doubleValue: number } })),
      { attributes: [{ key: 'a', value: { intValue: '0b1' } }] },
      { severityNumber: '0x1' },
    ]
    const odd = { traceId: 'abcd', spanId: traceId }
    const records = [...invalid, odd, { timeUnixNano: '7', body: { doubleValue: '1e3' }, traceId: '' }]
    const { body } = await sendJson('/v1/otlp/numbers/v1/logs', [{ records }])
    expect(body.partialSuccess.rejectedLogRecords).toBe(String(invalid.length))
    expect(await payloadsOf('numbers')).toEqual([odd, { timeUnixNano: '7', body: { doubleValue: 1_000 } }])
  })

  it('is refused if its members have the names of another signal, version or spelling', async () => {
    const requests: [path: string, body: object, expected: string][] = [
      ['/v1/logs', { resource_logs: [] }, 'resourceLogs is missing, got resource_logs'],
      ['/v1/logs', { resourceSpans: [] }, 'resourceLogs is missing, got resourceSpans'],
      ['/v1/traces', { resourceLogs: [] }, 'resourceSpans is missing, got resourceLogs'],
      ['/v1/logs', { resourceLogs: [{ instrumentationLibraryLogs: [] }] }, 'scopeLogs is missing'],
      ['/v1/logs', { resourceLogs: [{ scopeLogs: [{ scope: {}, logs: [] }] }] }, 'logRecords is missing'],
    ]
    for (const [path, body, expected] of requests) {
      const answer = await checkedCall(server, `POST ${path}`, { body })
      expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining(expected)])
    }
    const later = { later: 1, resourceLogs: [{ later: 1, scopeLogs: [{ later: 1, logRecords: [] }] }] }
    expect((await checkedCall(server, 'POST /v1/logs', { body: later })).body).toEqual({})
  })

  it('is answered with texts that have no lone surrogates', async () => {
    const records = [log(1), { body: { boolValue: '\ud800' } }]
    const partly = await sendJson('/v1/otlp/surrogates/v1/logs', [{ records }])
    expect(partly.body.partialSuccess.errorMessage).toMatch(/^record 2: .*\ufffd/)
    const whole = await checkedCall(server, 'POST /v1/logs', { body: { '\ud800': 1 } })
    expect(whole.body.detail).toMatch(/got \ufffd$/)
  })
})

describe('the agent', () => {
  it('is that of the path, of the header, or of the resource', async () => {
    const groups = [{ resource: service('of-resource'), records: [log(1)] }]
    await sendJson('/v1/otlp/of-path/v1/logs', groups, { headers: { 'strandfast-agent': 'unused' } })
    await sendJson('/v1/logs', groups, { headers: { 'strandfast-agent': 'of-header' } })
    await sendJson('/v1/logs', groups)
    for (const agent of ['of-path', 'of-header', 'of-resource'])
      expect(await payloadsOf(agent)).toHaveLength(1)
    await sendJson('/v1/otlp/of-path/v1/traces', [{ records: [span(1)] }])
    expect(await payloadsOf('of-path')).toHaveLength(2)
  })

  it('has the service name with _ for each character that names of agents cannot have', async () => {
    const names = ['Zahlung: München/1 😀', '.hidden', 'a::b', 'x'.repeat(200), '']
    await sendWire('/v1/logs', [
      ...names.map((name) => ({ resource: service(name), records: [log(1)] })),
      { records: [log(2)] },
    ])
    for (const agent of ['Zahlung__M_nchen_1__', '_hidden', 'a__b', 'x'.repeat(128)]) {
      expect([agent, (await payloadsOf(agent)).length]).toEqual([agent, 1])
    }
    expect(await payloadsOf('unknown_service')).toHaveLength(2)
  })

  it('is refused if its name is none, or the key does not reach it', async () => {
    const groups = [{ resource: service('mine'), records: [log(1)] }]
    const bad = await sendJson('/v1/logs', groups, { headers: { 'strandfast-agent': 'no name' } })
    expect([bad.status, bad.body.code]).toEqual([400, 'validation_failed'])
    const { key } = await scopedKey(server, ['ingest'], ['mine'])
    const other = [...groups, { resource: service('other'), records: [log(2)] }]
    const partly = await sendJson('/v1/logs', other, { key })
    expect(partly.body.partialSuccess).toEqual({
      rejectedLogRecords: '1',
      errorMessage: 'record 2: forbidden: This key does not reach agent "other"',
    })
    for (const route of ['/v1/otlp/other/v1/logs', '/v1/otlp/other/v1/traces'])
      expect((await sendJson(route, [], { key })).status).toBe(403)
    expect(await headOf(server, 'other')).toBeUndefined()
    const { key: reader } = await scopedKey(server, ['records:read'])
    expect((await sendJson('/v1/logs', groups, { key: reader })).status).toBe(403)
    expect((await sendJson('/v1/logs', groups, { key: null })).status).toBe(401)
  })
})

describe('a repeated record', () => {
  it('is written once if it is a span', async () => {
    const groups = [{ resource: service('spans'), records: [span(1), span(2), span(1)] }]
    expect((await sendJson('/v1/traces', groups)).body).toEqual({})
    expect((await sendWire('/v1/traces', groups)).fields.size).toBe(0)
    expect(await payloadsOf('spans')).toHaveLength(2)
  })

  it('is another record if it is a span with the ids of an earlier, different one', async () => {
    const spans = [span(1), { ...span(1), endTimeUnixNano: '1785603000250000000' }]
    for (const _time of [1, 2])
      expect((await sendJson('/v1/otlp/updated/v1/traces', [{ records: spans }])).body).toEqual({})
    expect(await payloadsOf('updated')).toEqual(spans)
  })

  it('is written once if it is a log record and dedupe=body is given', async () => {
    const groups = [{ resource: service('deduped'), records: [log(1), log(1), log(2)] }]
    await sendJson('/v1/logs', groups)
    expect(await payloadsOf('deduped')).toHaveLength(3)
    for (const _time of [1, 2]) await sendJson('/v1/logs?dedupe=body', groups)
    expect(await payloadsOf('deduped')).toHaveLength(5)
  })
})

describe('a record that cannot be written', () => {
  const large = { body: { stringValue: 'x'.repeat(300_000) } }

  it('is refused by itself, with the count and the first reasons', async () => {
    const surrogate = { body: { stringValue: '\ud800' } }
    const records = [log(1), large, surrogate, { severityNumber: 'WARN' }, { traceId: 'xyz' }, log(2)]
    const { status, body } = await sendJson('/v1/logs', [{ resource: service('partly'), records }])
    expect([status, body.partialSuccess.rejectedLogRecords]).toEqual([200, '4'])
    expect(body.partialSuccess.errorMessage).toMatch(
      /^record 2: too_large: .*; record 3: .*; record 4: .*; 1 more$/,
    )
    expect(await payloadsOf('partly')).toHaveLength(2)
  })

  it('is refused by itself in protobuf', async () => {
    const invalid = Buffer.from([0x1a, 2, 0xc3, 0x28])
    let value: Uint8Array = new Uint8Array()
    for (let level = 0; level < 200; level++) value = wireField(5, wireField(1, value))
    const written = [{}, large, log(1)].map((record) => recordWire('logs', record))
    const records = [...written.slice(0, 1), invalid, wireField(5, value), ...written.slice(1)]
    const scope = records.map((record) => wireField(2, record))
    const request = wireField(1, wireField(2, Buffer.concat(scope)))
    const { status, fields } = await sendBytes('/v1/otlp/wire/v1/logs', request)
    expect(status).toBe(200)
    const [count, reasons] = partialOf(fields)
    expect(count).toBe(3)
    expect(reasons).toMatch(/record 2: .*utf-8.*; record 3: .*depth.*; record 4: too_large: /i)
    expect(await payloadsOf('wire')).toEqual([{}, log(1)])
  })

  it('is refused if it is a span without ids', async () => {
    const zero = { ...span(1), traceId: '0'.repeat(32) }
    const records = [span(1), { name: 'no ids' }, zero, { ...span(2), spanId: 'ff' }]
    const { fields } = await sendBytes('/v1/otlp/ids/v1/traces', otlpWire('traces', [{ records }]))
    expect(partialOf(fields)).toEqual([
      3,
      expect.stringContaining('Expected a span with a traceId of 16 bytes'),
    ])
    expect(await payloadsOf('ids')).toHaveLength(1)
  })

  it('is answered 400 if nothing else is in the request', async () => {
    const groups = [{ resource: service('none'), records: [large] }]
    const { status, body } = await sendJson('/v1/logs', groups)
    expect([status, body.code, body.rejected]).toEqual([400, 'ingest_rejected', 1])
    const wire = await sendWire('/v1/logs', groups)
    expect([wire.status, String(Buffer.from(wire.fields.get(2) as Uint8Array))]).toEqual([
      400,
      expect.stringMatching(/^ingest_rejected: Could not write 1 record: record 1: too_large: Expected /),
    ])
    expect(await headOf(server, 'none')).toBeUndefined()
  })

  it('is stored with on_error=keep', async () => {
    await newAgent(server, 'rejects')
    const records = [log(1), { severityNumber: 'WARN' }, large]
    const groups = [{ resource: service('keeping'), records }]
    const { status, body } = await sendJson('/v1/logs?on_error=keep&rejected_agent=rejects', groups)
    expect([status, body.partialSuccess]).toEqual([
      200,
      {
        errorMessage: expect.stringMatching(/^2 refused records are stored as ingest\/rejected; record 2: /),
      },
    ])
    const written = await recordsOf('keeping')
    expect(new Set(written.map(({ type }) => type))).toEqual(new Set(['otel/log', 'ingest/rejected']))
    expect(written.find(({ payload }) => payload['line'] === 2)?.payload['text']).toBe(
      '{"severityNumber":"WARN"}',
    )
    const whole = await checkedCall(server, 'POST /v1/otlp/rejects/v1/logs?on_error=keep', { raw: 'no JSON' })
    expect([whole.status, whole.body.partialSuccess.errorMessage]).toEqual([
      200,
      expect.stringMatching(/^1 refused/),
    ])
    expect((await payloadsOf('rejects')).at(-1)).toMatchObject({ text: 'no JSON' })
  })

  it('is stored for no agent that only the refused bytes name', async () => {
    await newAgent(server, 'kept')
    const resource = { attributes: [{ key: 'service.name', value: 1 }] }
    const raw = { agent: 'victim', resourceLogs: [1] }
    const groups = [
      { resource: service('of-others'), records: [log(1)] },
      { resource, records: [{ agent: 'victim', ...log(2) }] },
    ]
    for (const path of [
      '/v1/logs?on_error=keep&rejected_agent=kept',
      '/v1/otlp/kept/v1/logs?on_error=keep',
    ]) {
      await checkedCall(server, `POST ${path}`, { body: raw })
      await sendJson(path, groups)
    }
    const rejected = (await recordsOf('kept')).filter(({ type }) => type === 'ingest/rejected')
    expect(rejected.map(({ payload }) => payload['line'])).toEqual([1, 2, 1, 2])
    expect(await payloadsOf('of-others')).toEqual([{ ...log(1), resource: service('of-others') }])
    expect(await headOf(server, 'victim')).toBeUndefined()
  })
})

describe('the routes', () => {
  it('refuse other media types, codings, parameters and conditions', async () => {
    const type = { 'content-type': 'text/plain' }
    const refusals: [path: string, more: TestCall, status: number][] = [
      ['/v1/logs', { raw: '{}', headers: type }, 415],
      ['/v1/logs', { raw: '{}', headers: { 'content-encoding': 'zstd' } }, 415],
      ['/v1/logs?on_error=reject_all', { raw: '{}' }, 400],
      ['/v1/logs?on_error=keep', { raw: '{}' }, 400],
      ['/v1/traces?dedupe=body', { raw: '{}' }, 400],
      ['/v1/logs?signing=none', { raw: '{}' }, 400],
      ['/v1/logs', { raw: '{}', headers: { 'if-match': '*' } }, 400],
    ]
    for (const [path, more, status] of refusals)
      expect([path, (await checkedCall(server, `POST ${path}`, more)).status]).toEqual([path, status])
  })

  it('answer the same text to an Idempotency-Key', async () => {
    const more = { headers: { 'idempotency-key': 'otlp' } }
    const groups = [{ resource: service('keyed'), records: [log(1)] }]
    for (const replayed of [null, 'true']) {
      const { body, headers } = await sendJson('/v1/logs', groups, more)
      expect([body, headers.get('idempotency-replayed')]).toEqual([{}, replayed])
    }
    expect(await payloadsOf('keyed')).toHaveLength(1)
    const other = await sendJson('/v1/logs', [{ resource: service('keyed'), records: [log(2)] }], more)
    expect([other.status, other.body.code]).toEqual([400, 'idempotency_key_reused'])
  })

  it('answer metrics with 404, which says where they belong', async () => {
    for (const path of ['/v1/metrics', '/v1/otlp/a/v1/metrics']) {
      const { status, body } = await checkedCall(server, `POST ${path}`, { raw: '{}' })
      expect([status, body.code]).toEqual([404, 'not_found'])
      const wire = await sendBytes(path, Buffer.from('0a00', 'hex'))
      expect([wire.status, String(Buffer.from(wire.fields.get(2) as Uint8Array))]).toEqual([
        404,
        expect.stringContaining('Prometheus'),
      ])
    }
  })

  it('answer 401 and 415 to protobuf as a google.rpc.Status', async () => {
    const { status, fields } = await sendBytes('/v1/logs', new Uint8Array(), {
      authorization: 'Bearer wrong',
    })
    expect([status, String(Buffer.from(fields.get(2) as Uint8Array))]).toEqual([
      401,
      expect.stringMatching(/^unauthorized: /),
    ])
    expect((await sendBytes('/v1/logs', new Uint8Array(), { 'content-encoding': 'br' })).status).toBe(415)
  })

  it('were all called', () => {
    expect(untestedSuccesses(otlpRoutes)).toEqual([])
  })
})
