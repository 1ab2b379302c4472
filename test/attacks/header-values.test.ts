// @run on node:http
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * Regression: uWebSockets.js trimmed bytes above 0x7F from both ends of a header's value. The keys `René` and
 * `Renè` were one, so that the second write was answered as a repetition and never made; `If-Match: ü` was no
 * condition; `ce-subject: René` was signed as `Ren`.
 */

let server: TestServer

beforeAll(async () => {
  server = await startServer()
})

afterAll(() => server.stop())

const body = '{"data":{"a":1}}'

/** Sends a write with these headers, as UTF-8 or as Latin-1. */
async function send(path: string, headers: string, encoding: 'utf8' | 'latin1' = 'utf8') {
  const length = /^(content-length|transfer-encoding)/im.test(headers)
    ? ''
    : `Content-Length: ${body.length}\r\n`
  const request =
    `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${testRootKey}\r\nConnection: close\r\n` +
    `${headers}${length}\r\n${body}`
  const connection = await RawConnection.open(server)
  connection.write(Buffer.from(request, encoding))
  return connection.ended()
}

const records = '/v1/collections/values/records'
const json = 'Content-Type: application/json\r\n'

async function agents(): Promise<string[]> {
  return (await call(server, 'GET /v1/agents')).body.agents.map(String)
}

/** Values of which all or some bytes are above 0x7F: at the end, at the beginning, in the middle, all. */
const values = ['Ren\u00e9', '\u8ba2\u53551001', 'a\u00e9b', '\u00fc', '\u00e9"a"\u00e9', '\u00ff1\u00ff']

describe.each([
  ['Idempotency-Key', records],
  ['If-Match', records],
  ['If-None-Match', records],
  ['Content-Type', records],
  ['Content-Encoding', records],
  ['Authorization', records],
  ['Last-Event-ID', records],
  ['Strandfast-Agent', '/v1/logs'],
  ['Strandfast-Agent-Seed', '/v1/strand/import'],
  ['ce-id', '/v1/ingest/values'],
  ['ce-source', '/v1/ingest/values'],
  ['ce-subject', '/v1/ingest/values'],
  ['Content-Length', records],
  ['Transfer-Encoding', records],
  ['Host', records],
])('the header %s', (name, path) => {
  it.each(values)('is refused with the value %s, and nothing is written', async (value) => {
    for (const encoding of ['utf8', 'latin1'] as const) {
      const answer = await send(path, `${name}: ${value}\r\n${name === 'Content-Type' ? '' : json}`, encoding)
      expect([encoding, ...answer.statuses]).toEqual([encoding, 400])
    }
    expect(await agents()).toEqual(['default'])
  })
})

describe('a length with a byte above 0x7F', () => {
  it.each(['Content-Length: 16\u00ff', 'Content-Length: \u00ff16', 'Transfer-Encoding: \u00ffchunked\u00ff'])(
    'is refused: %s',
    async (header) => {
      expect((await send(records, `${json}${header}\r\n`, 'latin1')).statuses).toEqual([400])
      expect(await agents()).toEqual(['default'])
    },
  )
})

describe('a header without a value, or twice', () => {
  it.each([
    ['an empty Idempotency-Key', records, 'Idempotency-Key:\r\n'],
    ['a blank Idempotency-Key', records, 'Idempotency-Key:  \t \r\n'],
    ['an empty If-Match', records, 'If-Match:\r\n'],
    ['an empty If-None-Match', records, 'If-None-Match:\r\n'],
    ['an empty Strandfast-Agent', '/v1/logs', 'Strandfast-Agent:\r\n'],
    ['an empty attribute of an event', '/v1/ingest/values', 'ce-subject:\r\n'],
    ['two Idempotency-Keys', records, 'Idempotency-Key: a\r\nIdempotency-Key: b\r\n'],
    ['two equal Idempotency-Keys', records, 'Idempotency-Key: a\r\nidempotency-key: a\r\n'],
    ['two Authorizations', records, `Authorization: Bearer ${testRootKey}\r\n`],
    ['two Content-Types', records, 'Content-Type: application/json\r\n'],
    ['two Strandfast-Agents', '/v1/logs', 'Strandfast-Agent: a\r\nStrandfast-Agent: b\r\n'],
    ['If-None-Match of a write', records, 'If-None-Match: *\r\n'],
  ])('is refused, and nothing is written: %s', async (_name, path, headers) => {
    expect((await send(path, json + headers)).statuses).toEqual([400])
    expect(await agents()).toEqual(['default'])
  })
})

it('keeps a value of visible ASCII, and decodes an attribute that is percent-encoded', async () => {
  const event = 'ce-id: 1\r\nce-source: a\r\nce-specversion: 1.0\r\nce-type: b\r\nce-subject: Ren%C3%A9\r\n'
  expect((await send('/v1/ingest/values', json + event)).statuses).toEqual([201])
  const key = 'Idempotency-Key: \t a "b" ~ \t\r\n'
  const first = await send(records, json + key)
  const second = await send(records, json + key)
  expect([...first.statuses, ...second.statuses]).toEqual([201, 201])
  expect(second.text).toContain('Idempotency-Replayed: true')
  const query = { body: { type: 'latest' } }
  const { body: page } = await call(server, 'POST /v1/agents/values/query', query)
  expect(page.records).toMatchObject([{ payload: { a: 1 } }, { payload: { subject: 'Ren\u00e9' } }])
})

it('accepts any text in headers that have no effect', async () => {
  const headers = 'User-Agent: Ren\u00e9\r\nCookie: name=\u8ba2\u5355\r\nX-Unknown: \u00fc\r\n'
  expect((await send(records, json + headers)).statuses).toEqual([201])
})
