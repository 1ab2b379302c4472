import { Agent, request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * Compressing an answer takes far longer than sending it: many concurrent requests for compressed answers
 * must neither block the front thread nor fill the memory with waiting answers.
 */

const CONNECTIONS = 32
const codings = ['br', 'gzip'] as const

let server: TestServer

beforeAll(async () => {
  server = await startServer({ nodeOptions: probedOptions, env: { SERVICE_SHARDS: '2' } })
  // The words differ, because repetitive data is compressed too quickly.
  const words = (from: number) =>
    Array.from({ length: 300 }, (_, n) => ((from + 7) * (n + 13) * 2_654_435_761) % 99_991)
  for (let from = 0; from < 1_000; from += 250) {
    const records = Array.from({ length: 250 }, (_, n) => ({ data: { n: from + n, words: words(from + n) } }))
    await call(server, 'POST /v1/collections/much/records/batch', { body: { records } })
  }
})
afterAll(() => server.stop())

/** An answer with its encoded body. */
interface Coded {
  status: number
  coding: string | undefined
  body: Buffer
}

interface CodedRequest {
  method: string
  path: string
  coding: string
  body?: string
}

const latest = { method: 'POST', path: '/v1/agents/much/query' }
const page = JSON.stringify({ type: 'latest', limit: 1_000 })

function ask(agent: Agent, { method, path, coding, body }: CodedRequest): Promise<Coded> {
  const headers = {
    authorization: `Bearer ${testRootKey}`,
    'content-type': 'application/json',
    'accept-encoding': coding,
  }
  return new Promise((resolve, reject) => {
    const sent = request(server.url + path, { method, agent, headers }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          coding: response.headers['content-encoding'],
          body: Buffer.concat(parts),
        }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function decoded({ coding, body }: Coded): string {
  if (coding === undefined) return body.toString()
  return (coding === 'br' ? brotliDecompressSync(body) : gunzipSync(body)).toString()
}

/** Sends a request `count` times on many connections concurrently, with alternating codings. */
async function askMany(count: number, about: Omit<CodedRequest, 'coding'>): Promise<Coded[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  try {
    return await Promise.all(
      Array.from({ length: count }, (_, n) => ask(agent, { ...about, coding: codings[n % 2] ?? 'br' })),
    )
  } finally {
    agent.destroy()
  }
}

it.each([
  ['the OpenAPI document', 500, { method: 'GET', path: '/openapi.json' }],
  ['the page of the documentation', 500, { method: 'GET', path: '/docs' }],
])('%s, requested %i times, is compressed once', async (_name, count, about) => {
  const { text } = await call(server, `${about.method} ${about.path}`)
  let answers: Coded[] = []
  await expectHarmless(server, async () => {
    answers = await askMany(count, about)
  })
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  for (const coding of codings) {
    const [one, ...others] = answers.filter((answer) => answer.coding === coding)
    expect(others).toHaveLength(count / 2 - 1)
    if (one !== undefined) expect(decoded(one)).toBe(text)
    expect(others.every(({ body }) => one !== undefined && body.equals(one.body))).toBe(true)
  }
})

it.each([
  ['pages of a query', 60, { ...latest, body: page }],
  [
    'pages as of a moment',
    60,
    { method: 'GET', path: '/v1/strand/as-of?agent=much&ts=2100-01-01&limit=1000' },
  ],
])(
  '%s are compressed as long as there is time, and otherwise sent uncompressed',
  async (_name, count, about) => {
    const { text } = await call(server, `${about.method} ${about.path}`, {
      ...('body' in about && { raw: about.body }),
    })
    let answers: Coded[] = []
    await expectHarmless(
      server,
      async () => {
        answers = await askMany(count, about)
      },
      { memoryMebibytes: 256 },
    )
    // Answers that exceed the quota of unread bytes are refused with 503.
    const answered = answers.filter(({ status }) => status !== 503)
    expect(new Set(answered.map(({ status }) => status))).toEqual(new Set([200]))
    expect(answered.some(({ coding }) => coding !== undefined)).toBe(true)
    for (const answer of answered.filter(({ coding }) => coding !== undefined))
      expect(decoded(answer)).toBe(text)
  },
)

it('exports are compressed a few at a time, for clients that read them and for clients that do not', async () => {
  const exports = { method: 'GET', path: '/v1/strand/export?agent=much' }
  let answers: Coded[] = []
  const stalled: RawConnection[] = []
  await expectHarmless(
    server,
    async () => {
      answers = await askMany(40, exports)
      for (let n = 0; n < CONNECTIONS; n++) {
        const connection = await RawConnection.open(server)
        stalled.push(connection)
        connection.socket.pause()
        connection.write(requestOf(exports.path, codings[n % 2]))
      }
      // Every stalled request has been admitted or refused before this one is answered.
      await askMany(1, exports)
    },
    // The threads of the reader pool start with it.
    { memoryMebibytes: 448 },
  )
  for (const connection of stalled) connection.destroy()
  const answered = answers.filter(({ status }) => status !== 503)
  expect(new Set(answered.map(({ status }) => status))).toEqual(new Set([200]))
  const coded = answered.filter(({ coding }) => coding !== undefined)
  expect(coded.length).toBeGreaterThan(0)
  for (const answer of coded) expect(decoded(answer).trimEnd().split('\n')).toHaveLength(1_000 + 3)
})

it('the server is not kept busy by clients that disconnect before they have their answer', async () => {
  await expectHarmless(
    server,
    async () => {
      for (let round = 0; round < 5; round++) {
        const connections = await Promise.all(
          Array.from({ length: CONNECTIONS }, () => RawConnection.open(server)),
        )
        for (const [n, connection] of connections.entries()) {
          const path =
            n % 2 === 0
              ? '/v1/strand/export?agent=much'
              : '/v1/strand/as-of?agent=much&ts=2100-01-01&limit=1000'
          connection.write(requestOf(path, codings[n % 2]))
        }
        await call(server, 'GET /healthz')
        for (const connection of connections) connection.socket.resetAndDestroy()
      }
    },
    { memoryMebibytes: 448 },
  )
  // Their quota is released: an export is compressed again, once the started compressions have ended.
  await eventually(async () => {
    const [one] = await askMany(1, { method: 'GET', path: '/v1/strand/export?agent=much' })
    return one?.status === 200 && one.coding === 'br'
  })
})

it.each([
  ['many names', 'x,'.repeat(7_000)],
  ['one long name', 'x'.repeat(14_000)],
  ['blanks', `br${' '.repeat(14_000)}x`],
  ['weights without an end', 'br;q=0.'.repeat(2_000)],
])('the server reads an Accept-Encoding of %s without a stall', async (_name, coding) => {
  await expectHarmless(server, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
    const about = { method: 'GET', path: '/openapi.json', coding }
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(agent, about)))
    agent.destroy()
    expect(new Set(answers.map((answer) => answer.coding))).toEqual(new Set([undefined]))
  })
})

function requestOf(path: string, coding = 'br'): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${testRootKey}\r\nAccept-Encoding: ${coding}\r\n\r\n`
}
