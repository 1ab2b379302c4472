import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkedCall } from '../../support/http/answers.js'
import { startServer, type TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

const ndjson = { 'content-type': 'application/x-ndjson' }
const large =
  '{"id":1176183462731927552,"low":-9007199254740992,"safe":9007199254740991,"text":"9007199254740993","deep":[[123456789012345678901234567890]]}'
const read = {
  id: '1176183462731927552',
  low: '-9007199254740992',
  safe: 9_007_199_254_740_991,
  text: '9007199254740993',
  deep: [['123456789012345678901234567890']],
}

async function payloads(agent: string): Promise<unknown[]> {
  const page = await checkedCall(server, `POST /v1/agents/${agent}/query`, { body: { type: 'time_range' } })
  return page.body.records.map((record: { payload: unknown }) => record.payload)
}

it('stores integers beyond 2^53-1 as strings with ?integers=text, and refuses them without', async () => {
  expect((await checkedCall(server, 'POST /v1/ingest/a', { raw: large })).status).toBe(400)
  expect((await checkedCall(server, 'POST /v1/ingest/a', { raw: large, headers: ndjson })).status).toBe(422)
  expect((await checkedCall(server, 'POST /v1/ingest/a?integers=text', { raw: large })).status).toBe(201)
  const lines = await checkedCall(server, 'POST /v1/ingest/a?integers=text', {
    raw: `${large}\n`,
    headers: ndjson,
  })
  expect([lines.status, lines.body.accepted]).toEqual([200, 1])
  for (const [query, key] of [
    ['', ''],
    ['', 'k'],
    ['&on_error=reject_all', ''],
  ] as const) {
    const headers = { ...ndjson, ...(key !== '' && { 'idempotency-key': key }) }
    const raw = `{"agent":"a","data":${large}}`
    const many = await checkedCall(server, `POST /v1/ingest?integers=text${query}`, { raw, headers })
    expect([many.status, many.body.accepted]).toEqual([200, 1])
  }
  expect(await payloads('a')).toEqual(Array.from({ length: 5 }, () => read))
})

it('refuses invalid JSON too', async () => {
  for (const raw of [
    '{9007199254740993:1}',
    '{9007199254740993 :1}',
    '{"a":09007199254740993}',
    '{"a":-09007199254740993}',
    '{"a":9007199254740993"b"}',
    '{"a":x9007199254740993}',
    '{"a":9007199254740993-1}',
    '{"a":+9007199254740993}',
    '{"a":9007199254740993',
    '{"a":"9007199254740993}',
  ]) {
    const { status, body } = await checkedCall(server, 'POST /v1/ingest/none?integers=text', { raw })
    expect([raw, status, body.code]).toEqual([raw, 400, 'validation_failed'])
  }
  const other = await checkedCall(server, 'POST /v1/ingest/none?integers=number', { raw: '{}' })
  expect([other.status, other.body.errors[0].pointer]).toEqual([400, '?integers'])
})
