// @run on node:http
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * Request smuggling exploits disagreement about the end of a chunked body: uWebSockets.js reads extensions as
 * digits, trailers as a request and a bare line feed as the end of a line. So a connection accepts no request
 * after a chunked one.
 */

const credential = `Authorization: Bearer ${testRootKey}\r\n`
const body = '{"data":{"a":1}}'
const size = body.length.toString(16)

const smuggledBody = '{"data":{"smuggled":true}}'
const smuggled =
  `POST /v1/collections/smuggled/records HTTP/1.1\r\nHost: a\r\n${credential}` +
  `Content-Type: application/json\r\nContent-Length: ${smuggledBody.length}\r\n\r\n${smuggledBody}`

function post(
  chunks: string,
  coding = 'Transfer-Encoding: chunked',
  path = '/v1/collections/chunked/records',
) {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\n${credential}Content-Type: application/json\r\n${coding}\r\n\r\n${chunks}`
}

let server: TestServer

beforeAll(async () => {
  server = await startServer()
  await call(server, 'POST /v1/collections/chunked/records', { body: { data: {} } })
})
afterAll(() => server.stop())

async function expectNotSmuggled(): Promise<void> {
  const written = await call(server, 'POST /v1/collections/sound/records', { body: { data: { ok: true } } })
  expect(written.status).toBe(201)
  expect((await call(server, 'GET /v1/agents')).body.agents).not.toContain('smuggled')
}

describe('a chunked body', () => {
  it.each([
    ['in one chunk', post(`${size}\r\n${body}\r\n0\r\n\r\n`)],
    ['in two chunks', post(`5\r\n${body.slice(0, 5)}\r\nb\r\n${body.slice(5)}\r\n0\r\n\r\n`)],
    ['with zeros before its size', post(`0000${size}\r\n${body}\r\n0\r\n\r\n`)],
    ['with its coding in mixed case', post(`${size}\r\n${body}\r\n0\r\n\r\n`, 'transfer-ENCODING:\tChunked')],
  ])('is read, and its connection ends after the answer: %s', async (_name, request) => {
    const connection = await RawConnection.open(server)
    connection.write(request)
    const { statuses, text, ended } = await connection.ended()
    expect({ statuses, ended }).toEqual({ statuses: [201], ended: 'end' })
    expect(text).toContain('\r\nConnection: close\r\n')
    const other = await RawConnection.open(server)
    other.write(request)
    await other.until((answer) => answer.statuses.length > 0)
    // A client that sends another request may find the connection reset.
    other.write(smuggled)
    expect((await other.ended()).statuses).toEqual([201])
    await expectNotSmuggled()
  })

  it('is the only kind of body after which a connection closes', async () => {
    const connection = await RawConnection.open(server)
    const request = post(body, `Content-Length: ${body.length}`)
    for (const count of [1, 2, 3]) {
      connection.write(request)
      await connection.until(({ statuses }) => statuses.length === count)
    }
    expect(connection.answer.text).not.toContain('Connection: close')
    connection.destroy()
  })

  it('can be refused before it is complete, and the answer closes the connection', async () => {
    const connection = await RawConnection.open(server)
    connection.write(post('').replace(credential, ''))
    await connection.until(({ statuses }) => statuses.length === 1)
    connection.write(`${size}\r\n${body}\r\n0\r\n\r\n`)
    const { statuses, text } = await connection.ended()
    expect(statuses).toEqual([401])
    expect(text).toContain('\r\nConnection: close\r\n')
  })

  it('is read unchanged, with any sizes of chunks', async () => {
    const records = Array.from({ length: 900 }, (_none, n) => ({ n, pad: String(n % 10).repeat(n) }))
    const text = records.map((record) => `${JSON.stringify(record)}\n`).join('')
    // Near the size to which the server joins chunks, and the size of Node's pool of small buffers.
    const sizes = [1, 7, 16_384, 16_383, 2, 300, 40_000, 3_000, 1_000, 100_000, 5_000, 16_385]
    let chunks = ''
    for (let at = 0, n = 0; at < text.length; n++) {
      const chunk = text.slice(at, at + (sizes[n % sizes.length] ?? 1))
      chunks += `${chunk.length.toString(16)}\r\n${chunk}\r\n`
      at += chunk.length
    }
    const connection = await RawConnection.open(server)
    const request = post(`${chunks}0\r\n\r\n`, undefined, '/v1/ingest/mixed')
    connection.write(request.replace('application/json', 'application/x-ndjson'))
    const { statuses, text: answer } = await connection.ended()
    expect(statuses).toEqual([200])
    expect(answer).toContain('"accepted":900,"rejected":0')
    const { body: page } = await call(server, 'POST /v1/agents/mixed/query', {
      body: { type: 'latest', limit: 1_000, order: 'asc' },
    })
    expect(page.records.map((record: { payload: unknown }) => record.payload)).toEqual(records)
  })

  it('is refused with 413 when it is too large', async () => {
    const connection = await RawConnection.open(server)
    const chunk = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`
    connection.write(post(chunk.repeat(48)))
    const { statuses, text } = await connection.until((answer) => answer.statuses.length === 1)
    expect(statuses).toEqual([413])
    expect(text).toContain('\r\nConnection: close\r\n')
    connection.destroy()
    await expectNotSmuggled()
  })
})

/*
 * Regression: the connection was closed with the answer, which reset a client that was still sending its body;
 * most saw an error instead of the 401, 413 or 429.
 */
describe('a body whose connection the client wants closed', () => {
  const closing = (length: number) => `Connection: close\r\nContent-Length: ${length}`

  it('can be refused before it is complete: the connection is closed when all of it has arrived', async () => {
    const connection = await RawConnection.open(server)
    connection.write(post(body.slice(0, 5), closing(body.length)).replace(credential, ''))
    await connection.until(({ statuses }) => statuses.length === 1)
    // The server would have closed the connection before it answers another request.
    await call(server, 'GET /healthz')
    expect(connection.answer.ended).toBeUndefined()
    connection.write(body.slice(5))
    const { statuses, text, ended } = await connection.ended()
    expect({ statuses, ended }).toEqual({ statuses: [401], ended: 'end' })
    expect(text).toContain('\r\nConnection: close\r\n')
  })

  it.each([
    ['too large', '/v1/collections/chunked/records', 413],
    ['for an unknown path', '/v1/nothing', 404],
  ])('is answered even if it is large and sent without waiting: %s', async (_name, path, status) => {
    const large = 'x'.repeat(20_000_000)
    for (let round = 0; round < 8; round++) {
      const connection = await RawConnection.open(server)
      connection.write(post(large, closing(large.length), path))
      const { statuses } = await connection.until((answer) => answer.statuses.length === 1)
      expect(statuses).toEqual([status])
      connection.destroy()
    }
  })
})

/** Bodies about whose end parsers disagree. */
const disputed: [name: string, chunks: string][] = [
  ['an extension', `${size};a=b\r\n${body}\r\n0\r\n\r\n`],
  ['an extension without a value', `${size};a\r\n${body}\r\n0\r\n\r\n`],
  ['an extension that ends in a bare line feed', `${size};a\n${body}\r\n0\r\n\r\n`],
  ['an extension with a bare carriage return', `${size};a\rb\r\n${body}\r\n0\r\n\r\n`],
  ['an extension with a line end in quotes', `${size};a="\r\n"\r\n${body}\r\n0\r\n\r\n`],
  ['a blank before the size', ` ${size}\r\n${body}\r\n0\r\n\r\n`],
  ['a blank after the size', `${size} \r\n${body}\r\n0\r\n\r\n`],
  ['a size with a prefix', `0x${size}\r\n${body}\r\n0\r\n\r\n`],
  ['a size with a sign', `+${size}\r\n${body}\r\n0\r\n\r\n`],
  ['a negative size', `-${size}\r\n${body}\r\n0\r\n\r\n`],
  ['a size with an underscore', `1_0\r\n${body}\r\n0\r\n\r\n`],
  ['no size', `\r\n${body}\r\n0\r\n\r\n`],
  ['a size of eight digits', `ffffffff\r\n${body}\r\n0\r\n\r\n`],
  ['a size that is right when truncated to 32 bits', `1000000${size}\r\n${body}\r\n0\r\n\r\n`],
  ['a size that is right when truncated to 64 bits', `1${size.padStart(16, '0')}\r\n${body}\r\n0\r\n\r\n`],
  ['a size that ends in a bare line feed', `${size}\n${body}\r\n0\r\n\r\n`],
  ['bare line feeds', `${size}\n${body}\n0\n\n`],
  ['bare carriage returns', `${size}\r${body}\r0\r\r`],
  ['more than its size says', `${size}\r\n${body}XX\r\n0\r\n\r\n`],
  ['less than its size says', `${(body.length + 5).toString(16)}\r\n${body}\r\n0\r\n\r\n`],
  ['no line end after a chunk', `${size}\r\n${body}0\r\n\r\n`],
  ['a trailer', `${size}\r\n${body}\r\n0\r\nX-Trailer: a\r\n\r\n`],
  ['a trailer that is a length', `${size}\r\n${body}\r\n0\r\nContent-Length: 50\r\n\r\n`],
  ['a request instead of a trailer', `${size}\r\n${body}\r\n0\r\n`],
  ['a request instead of a trailer, after two bytes', `${size}\r\n${body}\r\n0\r\nXX`],
  ['an incomplete end', `${size}\r\n${body}\r\n0`],
]

describe('a chunked body with a disputed end', () => {
  it('is the last request of its connection, and bytes after it are not executed', async () => {
    const requests = disputed.flatMap(([name, chunks]) => [
      { name, first: post(chunks) + smuggled, later: '' },
      { name, first: post(chunks), later: smuggled },
    ])
    const answers = await Promise.all(
      requests.map(async ({ first, later }) => {
        const connection = await RawConnection.open(server)
        connection.write(first)
        await connection.until(({ statuses, ended }) => statuses.length > 0 || ended !== undefined)
        if (later !== '') connection.write(later)
        return connection.ended()
      }),
    )
    for (const [index, { statuses }] of answers.entries()) {
      const name = requests[index]?.name
      expect(statuses.length, name).toBeLessThanOrEqual(2)
      // The first may be accepted; the bytes after it are never executed as a request.
      expect([undefined, 201, 400, 505], name).toContain(statuses[0])
      expect([undefined, 400, 505], name).toContain(statuses[1])
    }
    await expectNotSmuggled()
  })
})

/** Whether these tests run on node:http (vitest.config.ts). */
const isNode = process.env['SERVICE_HTTP_ENGINE'] === 'node'

// Regression test: an upload with trailers or chunk extensions was partly written but got 505 or no answer
// within ten seconds, so that the client sent it again.
describe('a chunked body with trailers or extensions', () => {
  const lines = '{"n":1}\n{"n":2}\n'
  const asLines = (chunks: string, path: string, more = '') =>
    post(chunks, `Transfer-Encoding: chunked${more}`, path).replace(
      'application/json',
      'application/x-ndjson',
    )
  /** The status of an answer, and whether the agent that the request creates exists. */
  async function outcomeOf(agent: string, request: string) {
    const connection = await RawConnection.open(server)
    connection.write(request)
    const { statuses } = await connection.ended()
    return [statuses[0], (await call(server, `GET /v1/agents/${agent}/head`)).status === 200]
  }

  it('is written and acknowledged, or refused and not written', async () => {
    const requests = disputed.flatMap(([name, chunks], n) => [
      { name, agent: `w${n}`, request: post(chunks, undefined, `/v1/collections/w${n}/records`) },
      {
        name: `${name}, in an upload of lines`,
        agent: `i${n}`,
        request: asLines(chunks, `/v1/ingest/i${n}`),
      },
    ])
    const outcomes = await Promise.all(requests.map(({ agent, request }) => outcomeOf(agent, request)))
    for (const [index, [status, isWritten]] of outcomes.entries()) {
      const { name } = requests[index] ?? {}
      if (status === 201) expect(isWritten, name).toBe(true)
      // The received lines of an incomplete upload are written.
      else if (isWritten && status !== 200)
        expect(name).toBe('less than its size says, in an upload of lines')
    }
    await expectNotSmuggled()
  })

  const length = lines.length.toString(16)
  const end = '0\r\nX-Sum: 1\r\n\r\n'
  it.each<[name: string, chunks: string, byUws: number]>([
    ['a trailer', `${length}\r\n${lines}\r\n${end}`, 505],
    [
      'trailers that look like a request',
      `${length}\r\n${lines}\r\n0\r\n${end.slice(3, -2)}A: /b\r\n\r\n`,
      505,
    ],
    ['an extension', `${length};foo=bar\r\n${lines}\r\n0\r\n\r\n`, 400],
    ['an extension of hex digits', `${length};a=b\r\n${lines}\r\n0;a=b\r\n\r\n`, 400],
    [
      'an extension of the first chunk',
      `1;a=b\r\n{\r\n${(lines.length - 1).toString(16)}\r\n${lines.slice(1)}\r\n0\r\n\r\n`,
      400,
    ],
  ])('is written with node:http, and refused with uWebSockets.js: %s', async (name, chunks, byUws) => {
    const agent = name.replaceAll(' ', '-')
    const outcome = await outcomeOf(agent, asLines(chunks, `/v1/ingest/${agent}`))
    expect(outcome).toEqual(isNode ? [200, true] : [byUws, false])
  })

  it('is refused by both engines when it announces trailers', async () => {
    const announced = asLines(`${length}\r\n${lines}\r\n${end}`, '/v1/ingest/announced', '\r\nTrailer: X-Sum')
    expect(await outcomeOf('announced', announced)).toEqual([400, false])
  })

  it('is executed before later trailers arrive', async () => {
    const path = '/v1/collections/later/records'
    const whole = post(`${size}\r\n${body}\r\n0\r\n`, undefined, path)
    const connection = await RawConnection.open(server)
    connection.write(whole)
    // uWebSockets.js executes the request before the trailers arrive; node:http waits for them.
    if (!isNode)
      await eventually(async () => (await call(server, 'GET /v1/agents/later/head')).body.seq === 1)
    connection.write('X-Sum: 1\r\n\r\n')
    expect((await connection.ended()).statuses).toEqual([201])
  })
})

describe('an answer of no bytes to a chunked body', () => {
  it('arrives whole, and ends its connection', async () => {
    // One empty ResourceLogs: the answer to an OTLP request of which nothing was refused has no fields.
    const request =
      `POST /v1/logs HTTP/1.1\r\nHost: a\r\n${credential}Content-Type: application/x-protobuf\r\n` +
      'Transfer-Encoding: chunked\r\n\r\n2\r\n\n\u0000\r\n0\r\n\r\n'
    for (const more of ['', smuggled]) {
      const connection = await RawConnection.open(server)
      connection.write(request)
      await connection.until(({ statuses }) => statuses.length > 0)
      if (more !== '') connection.write(more)
      const { statuses, text, ended } = await connection.ended()
      expect(statuses).toEqual([200])
      expect(text).toContain('\r\nContent-Length: 0\r\n')
      expect(text.split('\r\nConnection: close\r\n')).toHaveLength(2)
      if (more === '') expect(ended).toBe('end')
    }
    await expectNotSmuggled()
    expect(server.stderr()).not.toContain('"level":"error"')
  })

  it('has no length if its status has no body', async () => {
    const connection = await RawConnection.open(server)
    const head = 'OPTIONS /v1/agents HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9\r\n\r\n'
    connection.write(`${head}half`)
    const { statuses, text, ended } = await connection.ended()
    expect({ statuses, ended }).toEqual({ statuses: [204], ended: 'end' })
    expect(text).not.toContain('Content-Length')
  })
})

describe('pipelined requests', () => {
  it('end the connection, and get no answers out of order', async () => {
    const request = (n: number) =>
      post(`{"data":{"n":${n}}}`, 'Content-Length: 16', '/v1/collections/ahead/records')
    const connection = await RawConnection.open(server)
    connection.write(request(100) + request(101) + request(102))
    const { statuses, ended } = await connection.ended()
    expect({ statuses, ended }).toEqual({ statuses: [], ended: 'end' })
    const { body: page } = await call(server, 'POST /v1/agents/ahead/query', { body: { type: 'latest' } })
    // The first request may be written without an answer, as on any broken connection.
    expect([undefined, 0, 1]).toContain(page.records?.length)
    await expectNotSmuggled()
  })

  it('are answered in order when the routes need no shard', async () => {
    const connection = await RawConnection.open(server)
    connection.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /none HTTP/1.1\r\nHost: a\r\n\r\n')
    const { statuses } = await connection.until((answer) => answer.statuses.length === 2)
    expect(statuses).toEqual([200, 404])
    connection.destroy()
  })
})
