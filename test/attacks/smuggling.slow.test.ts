// @run on node:http
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * Request smuggling: uWebSockets.js treats any two bytes after the last chunk as a line end, so that a
 * trailer can be a request, and treats a semicolon in a chunk size as a digit. A proxy would then see one
 * request and the server two, so the server must not run any request after a chunked body, whatever the
 * answer to that request.
 */

const credential = `Authorization: Bearer ${testRootKey}\r\n`
const body = '{"data":{"a":1}}'
const size = body.length.toString(16)
const smuggledBody = '{"data":{"smuggled":true}}'
const smuggled =
  `POST /v1/collections/smuggled/records HTTP/1.1\r\nHost: a\r\n${credential}` +
  `Content-Type: application/json\r\nContent-Length: ${smuggledBody.length}\r\n\r\n${smuggledBody}`

/** Requests for every path of the code that can answer one: the request line and further headers. */
const requests: [name: string, line: string, headers: string][] = [
  [
    'an accepted write',
    'POST /v1/collections/chunked/records',
    `${credential}Content-Type: application/json\r\n`,
  ],
  ['a write without a credential', 'POST /v1/collections/chunked/records', ''],
  [
    'a write of another media type',
    'POST /v1/collections/chunked/records',
    `${credential}Content-Type: text/csv\r\n`,
  ],
  [
    'a write with an invalid header',
    'POST /v1/collections/chunked/records',
    `${credential}If-Match: wrong\r\n`,
  ],
  ['a write to an invalid name', 'POST /v1/collections/%zz/records', credential],
  ['a handler with a body', 'POST /v1/admin/api-keys', credential],
  ['an ingest', 'POST /v1/ingest/chunked', credential],
  ['an ingest without a credential', 'POST /v1/ingest/chunked', ''],
  ['an import', 'POST /v1/strand/import', credential],
  ['an auth route', 'POST /v1/auth/login', ''],
  ['an auth route without a body', 'POST /v1/auth/logout', ''],
  ['a route that takes no body', 'GET /healthz', ''],
  ['a command that takes no body', 'GET /v1/agents/chunked/head', credential],
  ['a handler that takes no body', 'GET /v1/agents', credential],
  ['an export', 'GET /v1/strand/export', credential],
  ['a stream', 'GET /v1/stream', credential],
  ['HEAD', 'HEAD /healthz', ''],
  ['DELETE', `DELETE /v1/records/${'0'.repeat(64)}`, credential],
  ['an unknown path', 'GET /none', ''],
  ['an unknown path of POST', 'POST /none', ''],
  ['a method that is not allowed', 'PUT /healthz', ''],
  ['OPTIONS', 'OPTIONS /v1/agents', ''],
]

const trailing = (line: string) => `${line}\r\n${smuggled.slice(smuggled.indexOf('\r\n') + 2)}`
const inTrailer = trailing('X:POST /v1/collections/smuggled/records HTTP/1.1')

/** 43 bytes, because `2;` is read as 43; for a reader of the size 2 they begin with a complete body. */
const swallowed = `{}\r\n0\r\n\r\n`.padEnd(43, ' ')

/** The bytes after the head: those sent with it, and those sent after its answer. */
const ends: [name: string, immediate: string, later: string][] = [
  ['a request after it', `${size}\r\n${body}\r\n0\r\n\r\n${smuggled}`, ''],
  ['a request shaped as a trailer', `${size}\r\n${body}\r\n0\r\n${inTrailer}`, ''],
  ['a trailer of two bytes', `${size}\r\n${body}\r\n0\r\n::${smuggled}`, ''],
  ['a request after an empty body', `0\r\n\r\n${smuggled}`, ''],
  ['a request shaped as a trailer of an empty body', `0\r\n${inTrailer}`, ''],
  ['a size of 2;', `2;\r\n${swallowed}\r\n0\r\n\r\n${smuggled}`, ''],
  ['a request later', `${size}\r\n${body}\r\n0\r\n\r\n`, smuggled],
  ['a request shaped as a trailer later', `${size}\r\n${body}\r\n0\r\n`, inTrailer],
  ['all of it later', '', `${size}\r\n${body}\r\n0\r\n${inTrailer}`],
  ['a size of 2; later', `2;\r\n{}\r\n`, `${swallowed.slice(4)}\r\n0\r\n\r\n${smuggled}`],
]

/**
 * Sends all requests with all ends, each on a separate connection.
 * @returns the answers of each connection
 */
async function sendAll(server: TestServer) {
  const cases = requests.flatMap(([name, line, headers]) =>
    ends.map(([end, immediate, later]) => ({ name: `${name}, ${end}`, line, headers, immediate, later })),
  )
  return Promise.all(
    cases.map(async ({ name, line, headers, immediate, later }) => {
      const connection = await RawConnection.open(server)
      connection.write(
        `${line} HTTP/1.1\r\nHost: a\r\n${headers}Transfer-Encoding: chunked\r\n\r\n${immediate}`,
      )
      if (later !== '') {
        // When this is answered, the earlier bytes have been read; some requests wait for the rest of their
        // body.
        await call(server, 'GET /healthz')
        connection.write(later)
      }
      const { statuses, text } = await connection.ended()
      return { name, statuses, text }
    }),
  )
}

let server: TestServer
let limited: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_AUTH_ENABLED: 'false' } })
  limited = await startServer({ env: { SERVICE_RATE_LIMIT_RPS: '1', SERVICE_RATE_LIMIT_BURST: '1' } })
})
afterAll(() => Promise.all([server.stop(), limited.stop()]))

describe('a chunked request', () => {
  it('is the last request of its connection on every path, so that no later bytes are run as a request', async () => {
    const answers = await sendAll(server)
    for (const { name, statuses } of answers) expect(statuses.length, name).toBeLessThanOrEqual(1)
    const agents = (await call(server, 'GET /v1/agents')).body.agents
    expect(agents).toContain('chunked')
    expect(agents).not.toContain('smuggled')
  })

  it('is also the last request if its address is over the rate limit', async () => {
    const answers = await sendAll(limited)
    for (const { name, statuses } of answers) expect(statuses.length, name).toBeLessThanOrEqual(1)
    expect(answers.flatMap(({ statuses }) => statuses)).toContain(429)
    await limited.halt()
    const again = await startServer({ dataDir: limited.dataDir })
    expect((await call(again, 'GET /v1/agents')).body.agents).not.toContain('smuggled')
    await again.halt()
  })

  it.each([
    ['GET /healthz', 400],
    ['HEAD /healthz', 400],
    ['OPTIONS /v1/agents', 400],
    ['GET /none', 404],
    ['PUT /healthz', 405],
    ['POST /v1/auth/logout', 400],
    ['POST /v1/auth/login', 404],
    ['POST /v1/collections/chunked/records', 401],
  ])(
    '%s is answered with %i as soon as its head has arrived, and its connection ends',
    async (line, status) => {
      const connection = await RawConnection.open(server)
      connection.write(`${line} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`)
      await connection.until(({ statuses }) => statuses.length === 1)
      connection.write(`${size}\r\n${body}\r\n0\r\n\r\n`)
      const { statuses, text, ended } = await connection.ended()
      expect({ statuses, ended }).toEqual({ statuses: [status], ended: 'end' })
      expect(text).toContain('\r\nConnection: close\r\n')
      expect(text.match(/connection:/gi)).toHaveLength(1)
    },
  )

  it('is not followed by another request if its client does not read the answers', async () => {
    const connection = await RawConnection.open(server)
    connection.socket.pause()
    // More than the buffers of the sockets hold.
    connection.write(`GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(64))
    connection.write(
      `POST /v1/collections/chunked/records HTTP/1.1\r\nHost: a\r\n${credential}` +
        `Transfer-Encoding: chunked\r\n\r\n${size}\r\n${body}\r\n0\r\n\r\n`,
    )
    await call(server, 'GET /healthz')
    connection.write(smuggled)
    await call(server, 'GET /healthz')
    connection.socket.resume()
    await connection.ended()
    expect((await call(server, 'GET /v1/agents')).body.agents).not.toContain('smuggled')
  })

  it('causes no log line', () => {
    expect(server.stderr()).toBe('')
  })
})
