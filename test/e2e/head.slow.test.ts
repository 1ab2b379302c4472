// @run on node:http
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { allRoutes } from '../../src/front/routes/routes.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * On a persistent connection, a client treats bytes after the head of an answer to HEAD as the next answer;
 * the same applies to an answer without content. So each request here is followed by another one.
 */

const credential = `Authorization: Bearer ${testRootKey}\r\n`
const getRoutes = allRoutes('default').filter(({ method }) => method === 'get')

/** A path of a route, with a value for every parameter. */
function pathOf(pattern: string): string {
  return pattern
    .replace(':hash', '0'.repeat(64))
    .replace(':provider', 'google')
    .replaceAll(/:[a-z_]+/g, 'default')
}

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
  await call(server, 'POST /v1/agents/default/records', { body: { data: {} } })
})
afterAll(() => server.stop())

/** The responses to a request and to another one after it on the same connection. */
async function exchange(line: string) {
  const connection = await RawConnection.open(server)
  connection.write(`${line} HTTP/1.1\r\nHost: a\r\n${credential}\r\n`)
  await connection.until(({ text }) => text.includes('\r\n\r\n'))
  connection.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
  const { statuses, text } = await connection.until(
    (answer) => answer.ended !== undefined || answer.text.endsWith('{"status":"alive"}'),
  )
  connection.destroy()
  const [head = '', next = ''] = [
    text.slice(0, text.indexOf('\r\n\r\n')),
    text.slice(text.indexOf('\r\n\r\n') + 4),
  ]
  return { statuses, head, next }
}

describe('HEAD', () => {
  it.each(getRoutes.map(({ path }) => path))(
    'is answered at %s without a body, and the connection stays usable',
    async (path) => {
      const { statuses, next } = await exchange(`HEAD ${pathOf(path)}`)
      expect(statuses).toHaveLength(2)
      expect(statuses[0]).not.toBe(405)
      expect(next).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    },
  )

  it('has the status and the headers of GET', async () => {
    // Streamed answers have no known length, and routes that write are not called.
    const whole = getRoutes.filter(
      (route) =>
        route.kind === 'command' ||
        route.kind === 'handler' ||
        (route.kind === 'auth' && route.writes !== true),
    )
    expect(whole.length).toBeGreaterThan(30)
    for (const { path } of whole) {
      const [head, got] = [
        await call(server, `HEAD ${pathOf(path)}`),
        await call(server, `GET ${pathOf(path)}`),
      ]
      const shown = ({ status, headers }: typeof got) => [
        path,
        status,
        headers.get('content-type'),
        headers.get('etag'),
        headers.get('allow'),
      ]
      expect(shown(head)).toEqual(shown(got))
      expect(head.text).toBe('')
      // Request ids and changing figures make lengths differ.
      if (got.status === 200 && !path.endsWith('/metrics'))
        expect([path, head.headers.get('content-length')]).toEqual([path, got.headers.get('content-length')])
    }
  })

  it.each([
    ['HEAD /none', 404],
    ['HEAD /v1/auth/none', 404],
    ['HEAD /v1/ingest', 405],
    ['HEAD /v1/agents/default/query', 405],
    ['HEAD /v1/agents/none/head', 404],
  ])('%s is answered %i without a body', async (line, status) => {
    const { statuses, head, next } = await exchange(line)
    expect(statuses).toEqual([status, 200])
    expect(head).toMatch(/\r\nContent-Length: [1-9]/)
    expect(next).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  })

  it('returns the head of an export and of a stream, without starting either', async () => {
    const exported = await exchange('HEAD /v1/strand/export')
    expect(exported.head).toMatch(/^HTTP\/1\.1 200 .*\r\nContent-Type: application\/x-ndjson\r\n/s)
    expect(exported.head).not.toMatch(/content-length|transfer-encoding/i)
    const streamed = await exchange('HEAD /v1/agents/default/stream')
    expect(streamed.head).toMatch(/^HTTP\/1\.1 200 .*\r\nContent-Type: text\/event-stream\r\n/s)
    expect(streamed.head).not.toMatch(/content-length|transfer-encoding/i)
  })

  it('does not consume a one-time value that GET would consume', async () => {
    const { statuses, head } = await exchange('HEAD /v1/auth/oauth/google/callback?state=x&code=y')
    expect(statuses).toEqual([204, 200])
    expect(head).not.toMatch(/content-length|set-cookie/i)
  })
})

it('sends no Content-Length for an answer without content', async () => {
  const { statuses, head, next } = await exchange('OPTIONS /v1/agents')
  expect(statuses).toEqual([204, 200])
  expect(head).not.toMatch(/content-length/i)
  expect(next).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
})
