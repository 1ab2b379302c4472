import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAuthServer } from '../support/server/auth-server.js'
import { hostileJson, hostileTexts, operationsOf, type Operation } from '../support/http/hostile.js'
import { expectHarmless, expectNoStall, longest, probed, probedOptions } from '../support/server/probe.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * Every route of the OpenAPI document, with long, deep, repeated and invalid input in each part of a request.
 * No input may stall other clients, whatever the answer is.
 */

/** The limit of the header block is 16 KiB. */
const HEAD_CHARACTERS = 14_000
/** The limit of most bodies is 64 KiB. */
const BODY_BYTES = 65_000

const GROWN_BYTES = 128 << 20

/** A request, and the moment of `Date.now()` when it was sent. */
interface Sent {
  atMs: number
  of: string
}

interface Request {
  line: string
  /** A header line with its line end. */
  headers?: string
  body?: string
}

let server: TestServer
let operations: Operation[]

beforeAll(async () => {
  server = await startAuthServer({ nodeOptions: probedOptions })
  operations = await operationsOf(server)
  // Records that the requests can find and search.
  for (let n = 0; n < 20; n++)
    await call(server, 'POST /v1/collections/sensors/records', { body: { data: { n } } })
})
afterAll(() => server.stop())

/** The path of an operation with a text for each of its parameters. */
function pathOf({ path }: Operation, text: string): string {
  const parameters = path.split('{').length - 1
  return path.replaceAll(/\{[a-z_]+\}/g, text.slice(0, Math.floor(text.length / Math.max(1, parameters))))
}

const plainPath = ({ path }: Operation) =>
  path
    .replace('{hash}', '0'.repeat(64))
    .replace('{provider}', 'google')
    .replaceAll(/\{[a-z_]+\}/g, 'sensors')

/** Sends requests one after another. @returns the unexpected answers, and when each request was sent */
async function sendAll(requests: readonly Request[]): Promise<{ odd: string[]; sent: Sent[] }> {
  const odd: string[] = []
  const sent: Sent[] = []
  for (const request of requests) {
    const { line, headers: more = '', body } = request
    const connection = await RawConnection.open(server)
    const length = body === undefined ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
    const own = `Host: a\r\nConnection: close\r\n${length}${more}`
    const type = more.startsWith('Content-Type') ? '' : 'Content-Type: application/json\r\n'
    const credential = more.startsWith('Authorization') ? '' : `Authorization: Bearer ${testRootKey}\r\n`
    sent.push({ atMs: Date.now(), of: `${line.slice(0, 80)} ${body?.slice(0, 80)}` })
    connection.write(Buffer.from(`${line} HTTP/1.1\r\n${own}${type}${credential}\r\n${body ?? ''}`))
    // Waits only for the status, because a stream has no end.
    const answer = await connection.until(({ statuses, ended }) => statuses.length > 0 || ended !== undefined)
    connection.destroy()
    const status = answer.statuses[0] ?? 0
    // 501 means that no provider is configured.
    if (status === 0 || (status >= 500 && status !== 501)) odd.push(`${status} ${line.slice(0, 80)}`)
  }
  return { odd, sent }
}

/**
 * Only single turns of the front count: on a busy machine a probe may wait for several requests, and the front
 * answers hundreds of probes while an export waits for a pool thread.
 */
async function expectCheap(requests: readonly Request[]): Promise<void> {
  expect(requests.length).toBeGreaterThan(30)
  let odd: string[] = []
  let sent: Sent[] = []
  const { frontTurns, shardMs, failed, memoryGrownBytes, slownessAt } = await probed(server, async () => {
    ;({ odd, sent } = await sendAll(requests))
  })
  expect({ odd, failed }).toEqual({ odd: [], failed: [] })
  expect(memoryGrownBytes).toBeLessThan(GROWN_BYTES)
  const [dearest] = frontTurns.toSorted((one, other) => other.ms - one.ms)
  const during = sent.findLast(({ atMs }) => atMs <= (dearest?.atMs ?? 0))
  expectNoStall({ frontMs: longest(frontTurns, slownessAt), shardMs }, during?.of)
}

const texts = hostileTexts(HEAD_CHARACTERS)
const bodies = hostileJson(BODY_BYTES)

/** Headers that routes read, up to their value. */
const headers = [
  'Authorization: Bearer ',
  'If-Match: "',
  'Idempotency-Key: ',
  'Last-Event-ID: ',
  'Content-Type: ',
  'Origin: ',
  'Cookie: ',
  'X-Request-Id: ',
]

describe('every route', () => {
  it('is listed in the document', () => {
    expect(operations.length).toBeGreaterThan(70)
    expect(operations.filter(({ example }) => example !== undefined).length).toBeGreaterThan(25)
  })

  it('costs little with hostile input in its path', async () => {
    const placed = operations.filter(({ path }) => path.includes('{'))
    await expectCheap(
      texts.flatMap(([, text]) => [
        ...placed.map((one) => ({ line: `${one.method} ${pathOf(one, text)}` })),
        { line: `GET /${text}` },
        { line: `OPTIONS /v1/agents/${text}` },
        { line: `GET /${'a/'.repeat(90)}${text.slice(0, 10_000)}` },
      ]),
    )
  })

  it('costs little with hostile input in its query', async () => {
    const line = (one: Operation, query: string) => ({ line: `${one.method} ${plainPath(one)}?${query}` })
    await expectCheap(
      operations.flatMap((one) =>
        one.query.flatMap((name) => texts.map(([, text]) => line(one, `${name}=${text}`))),
      ),
    )
  })

  it('costs little with thousands of query parameters', async () => {
    const many = ['p=1&', '&', 'limit=1&', '=&', '%41&'].map((one) =>
      one.repeat(HEAD_CHARACTERS / one.length),
    )
    await expectCheap(
      operations.flatMap((one) =>
        many.map((query) => ({ line: `${one.method} ${plainPath(one)}?${query}` })),
      ),
    )
  })

  it('costs little with hostile input in its headers', async () => {
    const some = ['dots', 'commas', 'a letter again and again']
    const values = texts.filter(([name]) => some.includes(name)).map(([, text]) => text)
    await expectCheap(
      operations.flatMap((one) =>
        headers.map((header, at) => ({
          line: `${one.method} ${plainPath(one)}`,
          headers: `${header}${values[at % values.length]}\r\n`,
        })),
      ),
    )
  })

  it('costs little with hostile input as its body', async () => {
    const withBody = operations.filter(({ example, lines }) => example !== undefined || lines)
    await expectCheap(
      withBody.flatMap((one) =>
        bodies.map(([, body]) => ({ line: `${one.method} ${plainPath(one)}`, body })),
      ),
    )
  })

  it('costs little with hostile input in each member of its body', async () => {
    await expectCheap(
      operations.flatMap((one) =>
        Object.keys(one.example ?? {}).flatMap((key) =>
          bodies.map(([, text]) => ({
            line: `${one.method} ${plainPath(one)}`,
            body: withPart(one, key, text),
          })),
        ),
      ),
    )
  })

  it('costs little with half a megabyte of hostile input in a record', async () => {
    await expectCheap(
      hostileJson(500_000).flatMap(([, text]) => [
        { line: 'POST /v1/collections/sensors/records', body: `{"data":${text}}` },
        { line: 'POST /v1/ingest/sensors', body: text },
      ]),
    )
  })

  it('stalls no other client with half a megabyte of records in an array', async () => {
    const uploads = hostileJson(500_000)
      .flatMap(([, body]) =>
        ['/v1/ingest/sensors', '/v1/ingest'].map((path) => ({ line: `POST ${path}`, body })),
      )
      .filter(isUpload)
    expect(uploads.length).toBeGreaterThan(8)
    await expectHarmless(server, async () => expect((await sendAll(uploads)).odd).toEqual([]))
  })

  it('has written nothing to the log', () => {
    expect(server.stderr()).toBe('')
  })
})

/** Whether a request is an array of many records for ingest, processed in slices: only the time of a slice counts. */
const isUpload = ({ line, body = '' }: Request) => line.startsWith('POST /v1/ingest') && body.startsWith('[')

/** The example of a body with another value of one member. */
function withPart({ example }: Operation, key: string, value: string): string {
  const members = Object.entries(example ?? {}).map(
    ([name, one]) => `${JSON.stringify(name)}:${name === key ? value : JSON.stringify(one)}`,
  )
  return `{${members.join(',')}}`
}
