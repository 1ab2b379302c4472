import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawConnection } from '../support/http/raw-http.js'
import { startServer, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * What is answered does not depend on the HTTP library: each request is sent to a server of either one, and the bytes
 * that come back are the same but for the time and the name of the server.
 */

const credential = `Authorization: Bearer ${testRootKey}\r\n`
const close = 'Connection: close\r\n'

/** A request; its id is the client's, so that it is the same in both answers. */
function request(line: string, headers = '', body = ''): string {
  const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
  return `${line} HTTP/1.1\r\nHost: a\r\nX-Request-Id: same\r\n${headers}${length}\r\n${body}`
}

const json = 'Content-Type: application/json\r\n'
const chunked = 'Transfer-Encoding: chunked\r\n'

const requests: [name: string, request: string][] = [
  ['a small answer', request('GET /healthz', close)],
  [
    'a small answer that keeps the connection, and one behind it',
    request('GET /healthz') + request('GET /none', close),
  ],
  ['HEAD', request('HEAD /healthz', close)],
  ['HEAD of a path that no route has', request('HEAD /none', close)],
  ['a path that no route has', request('GET /none', close)],
  ['a path with a slash at its end', request('GET /v1/agents/', credential + close)],
  ['a path with an empty segment', request('GET /v1/agents//head', credential + close)],
  ['a path in other letters', request('GET /V1/agents', credential + close)],
  ['a parameter that is percent-encoded', request('GET /v1/agents/a%2Fb/head', credential + close)],
  ['a parameter that cannot be decoded', request('GET /v1/agents/%ff/head', credential + close)],
  ['a query', request('GET /v1/agents?limit=3&prefix=a%20b', credential + close)],
  ['a query of question marks', request('GET /v1/agents???', credential + close)],
  ['a method that the path does not have', request('PUT /healthz', close)],
  ['a method that nobody knows', request('PROPFIND /healthz', close)],
  ['OPTIONS', request('OPTIONS /v1/agents', `Origin: http://a.example\r\n${close}`)],
  ['no credential', request('GET /v1/agents', close)],
  ['a wrong credential', request('GET /v1/agents', `Authorization: Bearer nobody\r\n${close}`)],
  ['a page', request('GET /v1/agents', credential + close)],
  ['a body that is no JSON', request('POST /v1/collections/a/records', credential + json + close, '{')],
  [
    'a body of another type',
    request('POST /v1/agents', `${credential}Content-Type: text/plain\r\n${close}`, 'x'),
  ],
  ['a body that is too large', request('POST /v1/agents', credential + json + close, 'x'.repeat(300_000))],
  ['an empty body', request('POST /v1/agents', `${credential}${json}Content-Length: 0\r\n${close}`)],
  ['a chunked body', `${request('POST /v1/agents', credential + json + chunked)}2\r\n{}\r\n0\r\n\r\n`],
  ['a chunked body where none belongs', `${request('GET /healthz', chunked)}0\r\n\r\n`],
  [
    'a client that asks whether it may go on',
    request('POST /v1/agents', `${credential}${json}Expect: 100-continue\r\n${close}`, '{}'),
  ],
  ['two of Host', request('GET /healthz', `Host: b\r\n`)],
  ['a Host of nothing that is one', request('GET /healthz').replace('Host: a', 'Host: a b')],
  ['a large answer', request('GET /openapi.json', close)],
  ['the document in HTML', request('GET /docs', close)],
  [
    'an upload of nothing',
    request('POST /v1/ingest/a', `${credential}Content-Type: application/x-ndjson\r\n${close}`),
  ],
  ['a stream without a credential', request('GET /v1/stream', close)],
]

let byUws: TestServer
let byNode: TestServer

beforeAll(async () => {
  byUws = await startServer({ env: { SERVICE_HTTP_ENGINE: 'uws' } })
  byNode = await startServer({ env: { SERVICE_HTTP_ENGINE: 'node' } })
})

afterAll(() => Promise.all([byUws.stop(), byNode.stop()]))

/** What a server says to some bytes until it closes the connection, without its time, its name and its request id. */
async function said(server: TestServer, bytes: string): Promise<string> {
  const connection = await RawConnection.open(server)
  connection.write(bytes)
  const { text } = await connection.ended()
  const [, id] = /"request_id":"([^"]+)"/.exec(text) ?? []
  const ofAnyServer = text.replaceAll(/^(?:Date|uWebSockets): .*\r\n/gm, '')
  return id === undefined ? ofAnyServer : ofAnyServer.replaceAll(id, 'id')
}

describe('the answers of uWebSockets.js and of node:http', () => {
  it.each(requests)('are the same bytes to %s', async (_name, bytes) => {
    const answer = await said(byUws, bytes)
    expect(answer).toMatch(/^HTTP\/1\.1 \d{3} /)
    expect(await said(byNode, bytes)).toBe(answer)
  })

  it('differ when the servers do not do the same', async () => {
    const bytes = request('GET /healthz', close)
    expect(await said(byNode, bytes.replace('X-Request-Id: same', 'X-Request-Id: other'))).not.toBe(
      await said(byUws, bytes),
    )
  })
})

/** A certificate of localhost for tests alone, and its key. */
const tls = join(import.meta.dirname, '../support/http/tls')
const cert = readFileSync(join(tls, 'cert.pem'), 'utf8')

describe.each(['uws', 'node'])('HTTPS by %s', (engine) => {
  it('answers whoever trusts the certificate, and says nothing to those who speak HTTP', async () => {
    const env = { SERVICE_TLS_CERT_FILE: join(tls, 'cert.pem'), SERVICE_TLS_KEY_FILE: join(tls, 'key.pem') }
    const server = await startServer({ env: { ...env, SERVICE_HTTP_ENGINE: engine } })
    try {
      expect(server.url).toMatch(/^https:/)
      const asked = get(`${server.url}/healthz`, { ca: cert, servername: 'localhost' })
      const [answer]: IncomingMessage[] = await once(asked, 'response')
      if (answer === undefined) throw new Error('Expected an answer')
      expect(answer.statusCode).toBe(200)
      expect(await text(answer)).toBe('{"status":"alive"}')
      const connection = await RawConnection.open(server)
      connection.write(request('GET /healthz', close))
      expect((await connection.ended()).statuses).toEqual([])
      await expect(once(get(`${server.url}/healthz`), 'response')).rejects.toThrow('self-signed certificate')
    } finally {
      await server.stop()
    }
  })
})
