import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ownedAgent, register } from '../support/auth/accounts.js'
import { eventually } from '../support/eventually.js'
import { heldConnections, memoryBytes, openHandles } from '../support/server/process-figures.js'
import { RawConnection } from '../support/http/raw-http.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { call, testRootKey, type TestServer } from '../support/server/server.js'

/**
 * Connections that are opened simultaneously: below the listen backlog, so that the server sees all of them.
 */
const WAVE = 250

const credential = `Authorization: Bearer ${testRootKey}\r\n`

let server: TestServer
let handlesAtRest: number
/** An agent that a user may read, and the user's unused token. */
let agent: string
let token: string

beforeAll(async () => {
  server = await startAuthServer()
  agent = await ownedAgent(server, 'watched')
  token = (await register(server, 'ada@example.org')).token
  // The first requests open handles that stay open: files of the stores, threads, and one connection.
  await expectServing()
  await call(server, 'GET /v1/strand/export')
  handlesAtRest = openHandles(server)
})

afterAll(() => server.stop())

async function expectServing(): Promise<void> {
  expect((await call(server, 'GET /readyz')).status).toBe(200)
  const written = await call(server, 'POST /v1/collections/steady/records', { body: { data: { ok: true } } })
  expect(written.status).toBe(201)
}

function openMany(count: number): Promise<RawConnection[]> {
  return Promise.all(Array.from({ length: count }, () => RawConnection.open(server)))
}

/**
 * Waits until the server has closed its handles. A few more may be open, because other calls of the test keep
 * theirs for a while.
 */
async function handlesReturn(): Promise<void> {
  await eventually(() => openHandles(server) <= handlesAtRest + 4)
}

async function recordCount(agent: string): Promise<number> {
  return (await call(server, `GET /v1/agents/${agent}/status`)).body.record_count
}

/** The head of a write request. */
function postHead(path: string, type: string, length = 'Content-Length: 5000'): string {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\n${credential}Content-Type: ${type}\r\n${length}\r\n\r\n`
}

/** Bodies that keep the front busy for longer than it has for one turn of its event loop. */
const costlyBody = `{"type":"time_range","where":[${'1,'.repeat(16_000)}1]}`
const COSTLY_BODIES = 64

/** Streams whose requests wait: for the check of a new token, or for a later turn of a busy front. */
async function openLate(): Promise<RawConnection[]> {
  const streamRequest = (key: string) =>
    `GET /v1/agents/${agent}/stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`
  const [busy, [ofUser, ...others]] = [await openMany(COSTLY_BODIES), await openMany(20)]
  if (ofUser === undefined) throw new Error('Expected a connection')
  ofUser.write(streamRequest(token))
  await ofUser.until(({ text }) => text.includes('caught_up'))
  // All requests have arrived when the front continues, and the streams come last.
  server.process.kill('SIGSTOP')
  const head = postHead('/v1/agents/steady/query', 'application/json', `Content-Length: ${costlyBody.length}`)
  for (const connection of busy) connection.write(head + costlyBody)
  for (const stream of others) stream.write(streamRequest(testRootKey))
  server.process.kill('SIGCONT')
  await Promise.all(others.map((stream) => stream.until(({ text }) => text.includes('caught_up'))))
  for (const connection of busy) connection.destroy()
  return [ofUser, ...others]
}

const halfRecord = '{"data":{"never":"ends'

/**
 * Beginnings of requests that clients never complete. With `dripping`, a client sends a letter at intervals.
 */
const beginnings = [
  { text: 'GET /v1/agents HTTP/1.1\r\nHost: a\r\nX-Slow: ', dripping: false },
  { text: 'GET /v1/agents HTTP/1.1\r\nHost: a\r\nX-Slow: ', dripping: true },
  { text: postHead('/v1/collections/unfinished/records', 'application/json') + halfRecord, dripping: false },
  { text: postHead('/v1/collections/unfinished/records', 'application/json') + halfRecord, dripping: true },
  { text: postHead('/v1/ingest/unfinished', 'application/x-ndjson') + halfRecord, dripping: false },
  { text: postHead('/v1/strand/import', 'application/x-ndjson') + halfRecord, dripping: false },
]

describe('clients that send too little', () => {
  it('are disconnected and do not affect others, however many they are', async () => {
    // uWebSockets.js closed these too, ten seconds after their answer began.
    const streams = await openLate()
    const connections = await openMany(600)
    const timers = connections.map((connection, index) => {
      const { text = '', dripping } = beginnings[index % beginnings.length] ?? {}
      connection.write(text)
      return dripping === true ? setInterval(() => connection.write('a'), 500) : undefined
    })
    // Lines of an upload may arrive slowly: each is written when it is complete.
    const patient = await openMany(60)
    const drops = patient.map((connection) => {
      connection.write(postHead('/v1/ingest/patient', 'application/x-ndjson', 'Transfer-Encoding: chunked'))
      connection.write('a\r\n{"drops":"\r\n')
      return setInterval(() => connection.write('1\r\na\r\n'), 500)
    })
    await expectServing()
    const answers = await Promise.all(connections.map((connection) => connection.ended()))
    for (const timer of [...timers, ...drops]) clearInterval(timer)
    expect(answers.every(({ text }) => text === '')).toBe(true)
    for (const connection of patient) connection.write('2\r\n"}\r\n0\r\n\r\n')
    for (const { statuses } of await Promise.all(patient.map((one) => one.ended())))
      expect(statuses).toEqual([200])
    expect(await recordCount('patient')).toBe(patient.length)
    await expectServing()
    expect(streams.map(({ answer }) => answer.ended)).toEqual(streams.map(() => undefined))
    for (const stream of streams) stream.destroy()
    expect((await call(server, 'GET /v1/agents/unfinished/status')).status).toBe(404)
    await handlesReturn()
  })
})

describe('a client that disconnects in the middle of its body', () => {
  const headOf = (path: string, type: string) => postHead(path, type, 'Content-Length: 1000000')

  it.each([
    ['closes', (connection: RawConnection) => connection.socket.end()],
    ['resets', (connection: RawConnection) => connection.socket.resetAndDestroy()],
  ])('has written nothing when it %s, if the body is one record or one batch', async (_name, leave) => {
    for (const path of [
      '/v1/collections/left/records',
      '/v1/collections/left/records/batch',
      '/v1/ingest/left',
    ]) {
      const connection = await RawConnection.open(server)
      connection.write(`${headOf(path, 'application/json')}{"data":{"left":"in the mid`)
      leave(connection)
      await connection.ended()
    }
    await expectServing()
    expect((await call(server, 'GET /v1/agents/left/status')).status).toBe(404)
    await handlesReturn()
  })

  it('has written complete lines, each once, if the body is a stream of lines', async () => {
    const lines = Array.from({ length: 2_000 }, (_none, n) => JSON.stringify({ n, pad: 'x'.repeat(200) }))
    const connection = await RawConnection.open(server)
    connection.write(`${headOf('/v1/ingest/streamed', 'application/x-ndjson')}${lines.join('\n')}\n{"n":`)
    await eventually(async () => ((await recordCount('streamed')) ?? 0) > 0)
    connection.socket.resetAndDestroy()
    await connection.ended()
    await handlesReturn()
    const { body } = await call(server, 'POST /v1/agents/streamed/query', {
      body: { type: 'latest', limit: 1000, order: 'asc' },
    })
    const numbers: number[] = body.records.map((record: { payload: { n: number } }) => record.payload.n)
    expect(numbers).toEqual(numbers.map((_number, index) => index))
  })
})

describe('a client that stops reading a big answer', () => {
  it('does not use memory in proportion to the answer, and other clients get complete answers', async () => {
    const line = JSON.stringify({ pad: 'x'.repeat(4_000) })
    const written = await call(server, 'POST /v1/ingest/big?signing=group', {
      raw: `${line}\n`.repeat(10_000),
      headers: { 'content-type': 'application/x-ndjson' },
    })
    expect(written.body.accepted).toBe(10_000)
    const before = memoryBytes(server)
    const stuck = await openMany(16)
    for (const connection of stuck) {
      connection.socket.pause()
      connection.write(`GET /v1/strand/export?agent=big HTTP/1.1\r\nHost: a\r\n${credential}\r\n`)
    }
    const whole = await call(server, 'GET /v1/strand/export?agent=big')
    expect(whole.text.split('\n').length).toBe(10_001 + 1 + 1 + 1)
    await expectServing()
    // Sixteen times the export would be 700 MB.
    expect(memoryBytes(server) - before).toBeLessThan(250 * 2 ** 20)
    for (const connection of stuck) connection.destroy()
    await handlesReturn()
    await expectServing()
  })
})

describe('two thousand connections that do nothing', () => {
  it('do not impair the server, and release their resources when they close', async () => {
    const before = memoryBytes(server)
    const connections: RawConnection[] = []
    while (connections.length < 2_000) {
      connections.push(...(await openMany(WAVE)))
      await eventually(() => heldConnections(server, connections) === connections.length)
    }
    await expectServing()
    expect(heldConnections(server, connections)).toBe(2_000)
    expect(memoryBytes(server) - before).toBeLessThan(100 * 2 ** 20)
    for (const connection of connections) connection.destroy()
    await eventually(() => heldConnections(server, connections) === 0)
    await handlesReturn()
    await expectServing()
  })
})
