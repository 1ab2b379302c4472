// @run on node:http
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { between, seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

const credential = `Authorization: Bearer ${testRootKey}\r\n`
const smuggledBody = '{"data":{"smuggled":true}}'
const smuggled =
  `POST /v1/collections/smuggled/records HTTP/1.1\r\nHost: a\r\n${credential}` +
  `Content-Type: application/json\r\nContent-Length: ${smuggledBody.length}\r\n\r\n${smuggledBody}`

/** An append request with `headers` and `body`. */
function post(headers: string, body = ''): string {
  return (
    `POST /v1/collections/framed/records HTTP/1.1\r\nHost: a\r\n${credential}` +
    `Content-Type: application/json\r\n${headers}\r\n${body}`
  )
}

/** A read request with `headers`. */
function get(headers: string): string {
  return `GET /v1/agents HTTP/1.1\r\nHost: a\r\n${credential}${headers}\r\n`
}

/** Whether these tests run on node:http (vitest.config.ts). */
const isNode = process.env['SERVICE_HTTP_ENGINE'] === 'node'

let server: TestServer

beforeAll(async () => {
  server = await startServer()
})

afterAll(() => server.stop())

/** Expects that the server still works and has not executed the smuggled request. */
async function expectNotSmuggled(): Promise<void> {
  expect((await call(server, 'GET /readyz')).status).toBe(200)
  const written = await call(server, 'POST /v1/collections/sound/records', { body: { data: { ok: true } } })
  expect(written.status).toBe(201)
  expect((await call(server, 'GET /v1/agents')).body.agents).not.toContain('smuggled')
}

/** Sends `data` on a new connection and waits until the server has closed it. */
async function sendRaw(data: string | Uint8Array) {
  const connection = await RawConnection.open(server)
  connection.write(data)
  return connection.ended()
}

describe('a request with ambiguous framing', () => {
  const length = smuggledBody.length
  it.each([
    ['two Content-Length that agree', post('Content-Length: 2\r\nContent-Length: 2\r\n', '{}')],
    ['two Content-Length that differ', post(`Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n`)],
    [
      'two Content-Length that differ, larger first',
      post('Content-Length: 2\r\nContent-Length: 0\r\n', '{}'),
    ],
    ['two Content-Length on a GET', get('Content-Length: 0\r\nContent-Length: 5\r\n')],
    [
      'two Content-Length on an unknown path',
      post('Content-Length: 0\r\nContent-Length: 5\r\n').replace('/v1/', '/v0/'),
    ],
    [
      'two Content-Length on OPTIONS',
      get('Content-Length: 0\r\nContent-Length: 5\r\n').replace('GET', 'OPTIONS'),
    ],
    ['a list of lengths', post('Content-Length: 2, 2\r\n', '{}')],
    ['a signed length', post('Content-Length: +2\r\n', '{}')],
    ['a negative length', post('Content-Length: -2\r\n', '{}')],
    ['a hexadecimal length', post('Content-Length: 0x2\r\n', '{}')],
    ['a length with a blank in it', post('Content-Length: 1 1\r\n', smuggledBody)],
    ['a length with a fraction', post('Content-Length: 2.0\r\n', '{}')],
    ['a length with an exponent', post('Content-Length: 2e0\r\n', '{}')],
    ['a length with a parameter', post('Content-Length: 2;a\r\n', '{}')],
    ['a length that is 2 when truncated to 64 bits', post('Content-Length: 18446744073709551618\r\n', '{}')],
    ['two lengths in different case', post('content-length: 2\r\nCONTENT-LENGTH: 2\r\n', '{}')],
    ['an empty length', post('Content-Length: \r\n')],
    ['a length beyond 64 bits', post('Content-Length: 99999999999999999999999999\r\n')],
    [
      'Content-Length before Transfer-Encoding',
      post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
    ],
    [
      'Transfer-Encoding before Content-Length',
      post('Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', '0\r\n\r\n'),
    ],
    [
      'two Transfer-Encoding',
      post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', '0\r\n\r\n'),
    ],
    ['a Transfer-Encoding that is not chunked', post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n')],
    ['a list of transfer codings', post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n')],
    ['transfer codings twice', post('Transfer-Encoding: chunked, chunked\r\n', '0\r\n\r\n')],
    ['a transfer coding in quotes', post('Transfer-Encoding: "chunked"\r\n', '0\r\n\r\n')],
    ['an empty transfer coding', post('Transfer-Encoding: \r\n', '0\r\n\r\n')],
    [
      'Content-Length and an invalid transfer coding',
      post('Transfer-Encoding: \x80chunked\r\nContent-Length: 5\r\n', '0\r\n\r\n'),
    ],
    [
      'a chunk size that is not a number',
      post('Transfer-Encoding: chunked\r\n', `zz\r\n${smuggledBody}\r\n0\r\n\r\n`),
    ],
    [
      'a chunk size beyond 64 bits',
      post('Transfer-Encoding: chunked\r\n', `${'f'.repeat(17)}\r\n{}\r\n0\r\n\r\n`),
    ],
    ['a control character in a header value', get('X-Odd: a\x7fb\r\n')],
    ['a control character after a valid credential', get('').replace(/(Authorization: [^\r]+)/i, '$1\x7f')],
    ['two Host', get('Host: b\r\n')],
    ['two Host that agree', get('Host: a\r\n')],
    ['a Host of two words', get('').replace('Host: a', 'Host: a b')],
    ['a Host with a path', get('').replace('Host: a', 'Host: a/b')],
    ['a Host with a user', get('').replace('Host: a', 'Host: a@b')],
    ['a Host whose port is not a number', get('').replace('Host: a', 'Host: a:b')],
    ['no Host', `GET /v1/agents HTTP/1.1\r\n${credential}Content-Length: ${length}\r\n\r\n${smuggledBody}`],
  ])('gets 400, its connection ends, and the bytes after it are not executed: %s', async (_name, request) => {
    const answer = await sendRaw(request + smuggled)
    expect(answer.statuses).toEqual([400])
    expect(answer.ended).toBe('end')
    await expectNotSmuggled()
  })

  it('gets a problem document with a code', async () => {
    const { text } = await sendRaw(post('Content-Length: 2\r\nContent-Length: 2\r\n', '{}'))
    const problem: unknown = JSON.parse(text.slice(text.indexOf('\r\n\r\n')))
    expect(problem).toMatchObject({ status: 400, code: 'malformed_request' })
  })

  it('is refused after another request on the same connection, which gets its answer', async () => {
    const connection = await RawConnection.open(server)
    connection.write(get(''))
    await connection.until(({ statuses }) => statuses.length === 1)
    connection.write(post('Content-Length: 0\r\nContent-Length: 2\r\n') + smuggled)
    expect((await connection.ended()).statuses).toEqual([200, 400])
    await expectNotSmuggled()
  })
})

describe('a header that the parser treats as incomplete', () => {
  /** The control characters that are not allowed in headers: all except tab (RFC 9110, 5.5). */
  const controls = [...Array(32).keys(), 127]
    .filter((code) => code !== 9)
    .map((code) => String.fromCharCode(code))
  const headers = [
    ...controls.map((control) => `X-Odd: a${control}b\r\n`),
    ...[...controls, '\t', ' ', '"', '(', '/', ';', '@', '\x80', '\xff'].map((odd) => `X-O${odd}dd: a\r\n`),
    'X-Odd: a\nX-Smuggled: b\r\n',
    'X-Odd: a\r\n folded\r\n',
    'X-Odd: a\r\n\tfolded\r\n',
    'X-Odd : a\r\n',
    'Content-Length : 2\r\n',
    'no colon\r\n',
    ': no name\r\n',
  ]

  // uWebSockets.js waits for the rest of it and closes the connection after ten seconds. It answers only if
  // more than a header block arrives, and passes nothing of such a request to the server.
  it('is never executed, nor are bytes after it: the server answers 400 or closes the connection', async () => {
    const connections = await Promise.all(headers.map(() => RawConnection.open(server)))
    for (const [index, connection] of connections.entries())
      connection.write(get(headers[index] ?? '') + smuggled)
    // Once this request is answered, the earlier bytes have been read.
    expect((await call(server, 'GET /healthz')).status).toBe(200)
    for (const connection of connections) connection.write(smuggled)
    const answers = await Promise.all(connections.map((connection) => connection.ended()))
    for (const [index, { statuses }] of answers.entries()) {
      expect(
        statuses.filter((status) => status !== 400),
        JSON.stringify(headers[index]),
      ).toEqual([])
    }
    await expectNotSmuggled()
  })

  it('gets 431 and the connection is closed immediately when the following bytes fill a header block', async () => {
    const { statuses, ended } = await sendRaw(get('X-Odd: a\x01b\r\n') + smuggled.repeat(100))
    expect({ statuses, ended }).toEqual({ statuses: [isNode ? 400 : 431], ended: 'end' })
    await expectNotSmuggled()
  })

  it.each([
    ['a tab', '\t'],
    ['bytes that are not ASCII', '\x80\xff'],
  ])('is executed with %s in a value, which HTTP allows', async (_name, text) => {
    const { statuses } = await sendRaw(get(`X-Odd: a${text}b\r\nConnection: close\r\n`))
    expect(statuses).toEqual([200])
  })
})

describe('a request with a valid Host', () => {
  it.each(['', 'a', 'a.example:8787', '127.0.0.1:80', '[::1]:8787', 'A_b-c.example.'])(
    'is executed: %j',
    async (host) => {
      const { statuses } = await sendRaw(get('Connection: close\r\n').replace('Host: a', `Host: ${host}`))
      expect(statuses).toEqual([200])
    },
  )
})

describe('lines that end with a bare line feed', () => {
  it('are not a request', async () => {
    const answer = await sendRaw(
      `GET /v1/agents HTTP/1.1\nHost: a\n${credential.replace('\r', '')}\n${smuggled}`,
    )
    expect(answer.statuses.every((status) => status >= 400)).toBe(true)
    await expectNotSmuggled()
  })
})

describe('a header block', () => {
  const withToken = (characters: number) =>
    `GET /v1/agents HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${'t'.repeat(characters)}\r\n\r\n`

  it('is accepted up to 15 KiB, in one or several parts, and the connection stays open', async () => {
    const connection = await RawConnection.open(server)
    connection.write(withToken(15 * 1024))
    await connection.until(({ statuses }) => statuses.length === 1)
    connection.write(withToken(15 * 1024).slice(0, 9_000))
    connection.write(withToken(15 * 1024).slice(9_000))
    await connection.until(({ statuses }) => statuses.length === 2)
    connection.write(get(''))
    const { statuses } = await connection.until((answer) => answer.statuses.length === 3)
    expect(statuses).toEqual([401, 401, 200])
    connection.destroy()
  })

  it.each([
    ['of more than 16 KiB', withToken(17 * 1024)],
    ['whose path alone is longer', `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['of more than a hundred headers', get('X-Many: a\r\n'.repeat(150))],
    ['of more than 90 headers', get('X-Many: a\r\n'.repeat(89))],
  ])('gets 431, and bytes after it are not executed: one %s', async (_name, request) => {
    const { statuses, ended } = await sendRaw(request + smuggled)
    expect({ statuses, ended }).toEqual({ statuses: [431], ended: 'end' })
    await expectNotSmuggled()
  })
})

describe('a header block with slightly too many headers', () => {
  it('gets a problem document with a code, and is accepted with fewer headers', async () => {
    const { statuses, text } = await sendRaw(get('X-Many: a\r\n'.repeat(89)))
    expect(statuses).toEqual([431])
    const problem: unknown = JSON.parse(text.slice(text.indexOf('\r\n\r\n')))
    expect(problem).toMatchObject({ status: 431, code: 'headers_too_large' })
    expect((await sendRaw(get(`Connection: close\r\n${'X-Many: a\r\n'.repeat(87)}`))).statuses).toEqual([200])
  })
})

describe('a target in another form than a path', () => {
  const line = (text: string, host = 'a') =>
    `${text} HTTP/1.1\r\nHost: ${host}\r\n${credential}Connection: close\r\n\r\n`

  // uWebSockets.js refuses targets that do not begin with a slash before the server sees the request.
  it.each<[name: string, request: string, byNode: number]>([
    ['with a path', line('GET http://a/v1/agents'), 200],
    ['in capital letters', line('GET HTTP://A:80/v1/agents'), 200],
    ['of https', line('GET https://a.example/v1/agents?limit=1'), 200],
    ['with an invalid query for its route', line('GET http://a/v1/agents?limit=x'), 400],
    ['without a path', line('GET http://a'), 302],
    ['without a path, with a query', line('OPTIONS http://a?x'), 204],
    ['whose host is invalid', line('GET http://a b/v1/agents'), 400],
    ['with a user', line('GET http://u@a/v1/agents'), 400],
    ['whose Host header is ignored', line('GET http://a/healthz', 'b'), 200],
    ['of another scheme', line('GET ftp://a/v1/agents'), 505],
    ['a star', line('OPTIONS *'), 204],
    ['a star of GET', line('GET *'), 505],
  ])('is served by node:http, and refused by uWebSockets.js: %s', async (_name, request, byNode) => {
    const { statuses, text } = await sendRaw(request)
    expect(statuses).toEqual([isNode ? byNode : 505])
    if (isNode && statuses[0] === 505) expect(text).toContain('"code":"http_version_not_supported"')
    await expectNotSmuggled()
  })

  it('gets all methods of the server when it is a star', async () => {
    const { text } = await sendRaw(line('OPTIONS *'))
    if (isNode) expect(text).toContain('\r\nAllow: DELETE, GET, HEAD, PATCH, POST, PUT, OPTIONS\r\n')
  })
})

describe('an unusual request line', () => {
  const line = (text: string) => `${text}\r\nHost: a\r\n${credential}Connection: close\r\n\r\n`

  // For bytes that are not a request, the two libraries return different statuses.
  it.each<[name: string, request: string, byUws: number, byNode?: number]>([
    ['an unknown method', line('BREW /v1/agents HTTP/1.1'), 405, 400],
    ['a method in lower case', line('get /v1/agents HTTP/1.1'), 405, 400],
    ['TRACE', line('TRACE /v1/agents HTTP/1.1'), 405],
    ['CONNECT', line('CONNECT example.com:443 HTTP/1.1'), 505],
    ['a control character in the method', line('G\x01T /v1/agents HTTP/1.1'), 505, 400],
    ['NUL in the path', line('GET /v1/agents/a\0b/head HTTP/1.1'), 505, 400],
    ['NUL in the path, encoded', line('GET /v1/agents/a%00b/head HTTP/1.1'), 400],
    ['an invalid encoding', line('GET /v1/agents/a%zzb/head HTTP/1.1'), 400],
    ['bytes that are not UTF-8, encoded', line('GET /v1/agents/%ff%fe/head HTTP/1.1'), 400],
    ['bytes that are not ASCII', line('GET /v1/agents/\xff\xfe/head HTTP/1.1'), 400],
    ['a path of 15,000 characters', line(`GET /${'a'.repeat(15_000)} HTTP/1.1`), 404],
    ['HTTP/1.0', line('GET /v1/agents HTTP/1.0'), 505],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505, 400],
    ['HTTP/1.2', line('GET /v1/agents HTTP/1.2'), 505],
    ['a version in lower case', line('GET /v1/agents http/1.1'), 505, 400],
    ['a word after the version', line('GET /v1/agents HTTP/1.1 x'), 505],
    ['two blanks', line('GET  /v1/agents HTTP/1.1'), 505, 200],
    ['a blank in the path', line('GET /v1/ agents HTTP/1.1'), 505, 400],
    ['tabs instead of blanks', line('GET\t/v1/agents\tHTTP/1.1'), 505, 400],
    ['a blank before the method', ` ${line('GET /v1/agents HTTP/1.1')}`, 505, 400],
    ['a line feed before the method', `\n${line('GET /v1/agents HTTP/1.1')}`, 505, 200],
    ['no method', line(' /v1/agents HTTP/1.1'), 405, 400],
    ['a method of 300 letters', line(`${'A'.repeat(300)} /v1/agents HTTP/1.1`), 405, 400],
    ['a control character in the query', line('GET /v1/agents?limit=\x01 HTTP/1.1'), 505, 400],
    ['bytes that are not ASCII in the query', line('GET /v1/agents?prefix=\xff HTTP/1.1'), 400],
    ['a path with a fragment', line('GET /v1/agents#x HTTP/1.1'), 404],
    ['a path with two slashes', line('GET //v1/agents HTTP/1.1'), 404],
    ['a path with dots', line('GET /v1/x/../agents HTTP/1.1'), 404],
    ['a path with an encoded slash', line('GET /v1%2fagents HTTP/1.1'), 404],
    ['a path with backslashes', line('GET \\v1\\agents HTTP/1.1'), 505, 400],
    ['a path without a slash', line('GET v1/agents HTTP/1.1'), 505, 400],
    ['a host instead of a path', line('GET example.com:443 HTTP/1.1'), 505, 400],
    ['a star instead of a path', line('OPTIONS * HTTP/1.1'), 505, 204],
    ['a greeting of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 505, 400],
    [
      'a line of a proxy before it',
      `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${line('GET /healthz HTTP/1.1')}`,
      505,
      400,
    ],
    ['an absolute address', line('GET http://a/v1/agents HTTP/1.1'), 505, 200],
  ])('is refused, or harmless: %s', async (_name, request, ...[byUws, byNode = byUws]) => {
    const { statuses } = await sendRaw(request)
    expect(statuses).toEqual([isNode ? byNode : byUws])
    await expectNotSmuggled()
  })
})

describe('pipelined requests', () => {
  // Regression test: 512 KB of requests were answered in one turn, in which no other connection was served.
  it('close their connection after a few requests of one read were answered', async () => {
    const request = 'GET /v1/agents HTTP/1.1\r\nHost: a\r\n\r\n'
    const count = Math.floor(524_288 / request.length)
    const { statuses } = await sendRaw(request.repeat(count))
    expect(statuses.length).toBeLessThan(count / 2)
    await expectNotSmuggled()
  })
})

describe('a well-formed request that arrives in two pieces', () => {
  const request = 'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
  const version = request.indexOf(' HTTP/')
  /** Offsets at which uWebSockets.js fails: after the method, and within the version. */
  const failingOffsets = [
    'GET '.length,
    ...Array.from({ length: ' HTTP/1.1\r'.length }, (_none, n) => version + 1 + n),
  ]
  /** The status of the request, split at an offset. Its first part is read together with another request. */
  async function splitAt(at: number): Promise<number | undefined> {
    const connection = await RawConnection.open(server)
    connection.write(`GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n${request.slice(0, at)}`)
    await connection.until(({ statuses }) => statuses.length > 0)
    connection.write(request.slice(at))
    return (await connection.ended()).statuses.at(-1)
  }

  // Some pipelined requests got 505, because a read had ended within them
  // (docs/adr/0037-two-http-engines.md).
  it('is executed for any split, except where uWebSockets.js reads another version', async () => {
    const others: [at: number, status: number | undefined][] = []
    for (let at = 1; at < request.length; at++) {
      const status = await splitAt(at)
      if (status !== 200) others.push([at, status])
    }
    expect(others).toEqual(isNode ? [] : failingOffsets.map((at) => [at, 505]))
  })
})

describe('bytes that are not HTTP', () => {
  const random = seededRandom(99)

  it('do not affect the server', async () => {
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        Array.from({ length: 16 }, async () => {
          const connection = await RawConnection.open(server)
          const bytes = Buffer.from(
            Array.from({ length: between(random, 1, 4_000) }, () => between(random, 0, 255)),
          )
          connection.write(bytes)
          connection.socket.end()
          await connection.ended()
        }),
      )
    }
    await expectNotSmuggled()
  })

  it('do not affect the server in the middle of a request, which is refused', async () => {
    // Without the credential, so that the server must refuse any damaged request.
    const whole = Buffer.from(smuggled.replace(credential, ''), 'latin1')
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        Array.from({ length: 16 }, async () => {
          const damaged = Buffer.from(whole)
          for (let change = between(random, 1, 8); change > 0; change--) {
            damaged[between(random, 0, damaged.length - 1)] = between(random, 0, 255)
          }
          const connection = await RawConnection.open(server)
          connection.write(damaged)
          connection.socket.end()
          const { statuses } = await connection.ended()
          expect(statuses.every((status) => status >= 400)).toBe(true)
        }),
      )
    }
    await expectNotSmuggled()
  })
})
