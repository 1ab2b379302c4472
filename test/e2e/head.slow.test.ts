// @run on node:http
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { allRoutes } from '../../src/front/routes/routes.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * A client that keeps its connection takes what comes behind the head of an answer to HEAD for the next answer, and the
 * same of an answer without content. So each is followed by another request here.
 */

const credential = `Authorization: Bearer ${testRootKey}\r\n`
const getRoutes = allRoutes('default').filter(({ method }) => method === 'get')

/** A path of a route, with something in every place. */
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

/** What comes back for a request, and for another one behind it on the same connection. */
async function said(line: string) {
  const connection = await RawConnection.open(server)
  connection.write(`${line} HTTP/1.1\r\nHost: a\r\n${credential}\r\n`)
  await connection.until(({ text }) => text.includes('\r\n\r\n'))
  connection.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
  const { statuses, text } = await connection.until(
    (answer) => answer.ended !== undefined || answer.text.endsWith('{"status":"alive"}'),
  )
  connection.destroy()
  const [head = '', behind = ''] = [
    text.slice(0, text.indexOf('\r\n\r\n')),
    text.slice(text.indexOf('\r\n\r\n') + 4),
  ]
  return { statuses, head, behind }
}

describe('HEAD', () => {
  it.each(getRoutes.map(({ path }) => path))(
    'is answered at %s without a body, and the connection goes on',
    async (path) => {
      const { statuses, behind } = await said(`HEAD ${pathOf(path)}`)
      expect(statuses).toHaveLength(2)
      expect(statuses[0]).not.toBe(405)
      expect(behind).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    },
  )

  it('has the status and the headers of GET', async () => {
    // What is made while it is sent has no length before, and what writes is not done.
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
      // Request ids and figures that change have other lengths.
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
    const { statuses, head, behind } = await said(line)
    expect(statuses).toEqual([status, 200])
    expect(head).toMatch(/\r\nContent-Length: [1-9]/)
    expect(behind).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  })

  it('shows the head of an export and of a stream, and makes neither', async () => {
    const exported = await said('HEAD /v1/strand/export')
    expect(exported.head).toMatch(/^HTTP\/1\.1 200 .*\r\nContent-Type: application\/x-ndjson\r\n/s)
    expect(exported.head).not.toMatch(/content-length|transfer-encoding/i)
    const streamed = await said('HEAD /v1/agents/default/stream')
    expect(streamed.head).toMatch(/^HTTP\/1\.1 200 .*\r\nContent-Type: text\/event-stream\r\n/s)
    expect(streamed.head).not.toMatch(/content-length|transfer-encoding/i)
  })

  it('uses nothing up where GET would', async () => {
    const { statuses, head } = await said('HEAD /v1/auth/oauth/google/callback?state=x&code=y')
    expect(statuses).toEqual([204, 200])
    expect(head).not.toMatch(/content-length|set-cookie/i)
  })
})

it('gives no length of content that there is none of', async () => {
  const { statuses, head, behind } = await said('OPTIONS /v1/agents')
  expect(statuses).toEqual([204, 200])
  expect(head).not.toMatch(/content-length/i)
  expect(behind).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
})
