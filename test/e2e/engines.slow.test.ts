import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawConnection } from '../support/http/raw-http.js'
import { startServer, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * Answers do not depend on the HTTP library: each request is sent to a server with each library, and the
 * responses are the same bytes except for the time and the name of the server.
 */

const credential = `Authorization: Bearer ${testRootKey}\r\n`
const close = 'Connection: close\r\n'

/** A request. The client sets its id, so that it is the same in both answers. */
function request(line: string, headers = '', body = ''): string {
  const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
  return `${line} HTTP/1.1\r\nHost: a\r\nX-Request-Id: same\r\n${headers}${length}\r\n${body}`
}

const json = 'Content-Type: application/json\r\n'
const chunked = 'Transfer-Encoding: chunked\r\n'

const requests: [name: string, request: string][] = [
  ['a small answer', request('GET /healthz', close)],
  [
    'a small answer on a persistent connection, and another one after it',
    request('GET /healthz') + request('GET /none', close),
  ],
  ['HEAD', request('HEAD /healthz', close)],
  ['HEAD of an unknown path', request('HEAD /none', close)],
  ['an unknown path', request('GET /none', close)],
  ['a path with a slash at its end', request('GET /v1/agents/', credential + close)],
  ['a path with an empty segment', request('GET /v1/agents//head', credential + close)],
  ['a path in capitals', request('GET /V1/agents', credential + close)],
  ['a parameter that is percent-encoded', request('GET /v1/agents/a%2Fb/head', credential + close)],
  ['a parameter that cannot be decoded', request('GET /v1/agents/%ff/head', credential + close)],
  ['a query', request('GET /v1/agents?limit=3&prefix=a%20b', credential + close)],
  ['a query of question marks', request('GET /v1/agents???', credential + close)],
  ['a method that the path does not have', request('PUT /healthz', close)],
  ['an unknown method', request('PROPFIND /healthz', close)],
  ['OPTIONS', request('OPTIONS /v1/agents', `Origin: http://a.example\r\n${close}`)],
  ['no credential', request('GET /v1/agents', close)],
  ['a wrong credential', request('GET /v1/agents', `Authorization: Bearer unknown\r\n${close}`)],
  ['a page', request('GET /v1/agents', credential + close)],
  ['a body that is not JSON', request('POST /v1/collections/a/records', credential + json + close, '{')],
  [
    'a body of another type',
    request('POST /v1/agents', `${credential}Content-Type: text/plain\r\n${close}`, 'x'),
  ],
  ['a body that is too large', request('POST /v1/agents', credential + json + close, 'x'.repeat(300_000))],
  ['an empty body', request('POST /v1/agents', `${credential}${json}Content-Length: 0\r\n${close}`)],
  ['a chunked body', `${request('POST /v1/agents', credential + json + chunked)}2\r\n{}\r\n0\r\n\r\n`],
  ['a chunked body of a GET', `${request('GET /healthz', chunked)}0\r\n\r\n`],
  [
    'a client that expects 100 Continue',
    request('POST /v1/agents', `${credential}${json}Expect: 100-continue\r\n${close}`, '{}'),
  ],
  ['two Host headers', request('GET /healthz', `Host: b\r\n`)],
  ['an invalid Host', request('GET /healthz').replace('Host: a', 'Host: a b')],
  ['a large answer', request('GET /openapi.json', close)],
  ['the document in HTML', request('GET /docs', close)],
  [
    'an empty upload',
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

/**
 * The response to some bytes until the server closes the connection, without the time, the server's name and
 * the request id.
 */
async function responseTo(server: TestServer, bytes: string): Promise<string> {
  const connection = await RawConnection.open(server)
  connection.write(bytes)
  const { text } = await connection.ended()
  const [, id] = /"request_id":"([^"]+)"/.exec(text) ?? []
  const ofAnyServer = text.replaceAll(/^(?:Date|uWebSockets): .*\r\n/gm, '')
  return id === undefined ? ofAnyServer : ofAnyServer.replaceAll(id, 'id')
}

describe('the answers of uWebSockets.js and of node:http', () => {
  it.each(requests)('are the same bytes for %s', async (_name, bytes) => {
    const answer = await responseTo(byUws, bytes)
    expect(answer).toMatch(/^HTTP\/1\.1 \d{3} /)
    expect(await responseTo(byNode, bytes)).toBe(answer)
  })

  it('differ if the requests differ', async () => {
    const bytes = request('GET /healthz', close)
    expect(await responseTo(byNode, bytes.replace('X-Request-Id: same', 'X-Request-Id: other'))).not.toBe(
      await responseTo(byUws, bytes),
    )
  })
})

/** A test certificate for localhost, and its key. */
const tls = join(import.meta.dirname, '../support/http/tls')
const cert = readFileSync(join(tls, 'cert.pem'), 'utf8')

describe.each(['uws', 'node'])('HTTPS by %s', (engine) => {
  it.each([
    ['', ''],
    [' with byte order marks', '\uFEFF'],
  ])(
    'serves clients that trust the certificate, and sends nothing over HTTP, with files%s',
    async (_, mark) => {
      const folder = mkdtempSync(join(tmpdir(), 'engines-'))
      const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
      writeFileSync(certFile, `${mark}${cert}`)
      writeFileSync(keyFile, `${mark}${readFileSync(join(tls, 'key.pem'), 'utf8')}`)
      const env = { SERVICE_TLS_CERT_FILE: certFile, SERVICE_TLS_KEY_FILE: keyFile }
      const server = await startServer({ env: { ...env, SERVICE_HTTP_ENGINE: engine } })
      try {
        expect(server.url).toMatch(/^https:/)
        const sent = get(`${server.url}/healthz`, { ca: cert, servername: 'localhost' })
        const [answer]: IncomingMessage[] = await once(sent, 'response')
        if (answer === undefined) throw new Error('No answer received')
        expect(answer.statusCode).toBe(200)
        expect(await text(answer)).toBe('{"status":"alive"}')
        const connection = await RawConnection.open(server)
        connection.write(request('GET /healthz', close))
        expect((await connection.ended()).statuses).toEqual([])
        await expect(once(get(`${server.url}/healthz`), 'response')).rejects.toThrow(
          'self-signed certificate',
        )
      } finally {
        rmSync(folder, { recursive: true })
        await server.stop()
      }
    },
  )
})
