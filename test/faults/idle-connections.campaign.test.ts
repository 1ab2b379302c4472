import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { leftOut } from '../support/faults/rounds.js'
import { heldConnections, memoryBytes, openHandles } from '../support/server/process-figures.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

const STREAMS = 10_000
/** Connections that never send anything, and as many that send one request. */
const OTHERS = 1_000
/** Connections that are opened simultaneously; more than the listen backlog would stall. */
const WAVE = 250
const AGENTS = 100
/**
 * Memory of a stream: its objects and the buffers of its socket; twice as much with node:http, whose sockets
 * are JS objects.
 */
const STREAM_BYTES = (process.env['SERVICE_HTTP_ENGINE'] === 'node' ? 16 : 8) * 1024
/** Including memory that any load leaves allocated. */
const MEMORY_BYTES_MAX = STREAMS * STREAM_BYTES + 48 * 2 ** 20

const credential = `Host: a\r\nAuthorization: Bearer ${testRootKey}\r\n`

const headRequest = `GET /v1/agents/steady/head HTTP/1.1\r\n${credential}\r\n`
const everyAgent = Array.from({ length: AGENTS }, (_none, n) => n)

const filesNeeded = STREAMS + 2 * OTHERS + 500
const filesMax = Number(
  /^Max open files\s+\d+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity,
)
const missing = filesMax < filesNeeded ? `${filesNeeded} open files, ${filesMax} are allowed` : undefined

let server: TestServer

beforeEach(async () => {
  server = await startServer({ env: { SERVICE_STREAMS_PER_PRINCIPAL: String(STREAMS) } })
  await expectServing()
})

afterEach(() => server.stop())

/** One stream in a hundred is for all agents, the others for one agent each. */
function isGlobal(n: number): boolean {
  return n % AGENTS === 0
}

function streamRequest(n: number): string {
  const path = isGlobal(n) ? '/v1/stream' : `/v1/agents/agent-${n % AGENTS}/stream`
  return `GET ${path} HTTP/1.1\r\n${credential}\r\n`
}

async function write(n: number, data: object): Promise<void> {
  const { status } = await call(server, `POST /v1/collections/agent-${n}/records`, { body: { data } })
  expect(status).toBe(201)
}

/** Resolves when `holds` is true for the text that each connection has received. */
async function all(connections: RawConnection[], holds: (text: string) => boolean): Promise<void> {
  await Promise.all(connections.map((one) => one.until(({ text }) => holds(text))))
}

/** Opens `count` connections, and sends `greeting(n)` on each. */
async function openMany(count: number, greeting: (n: number) => string): Promise<RawConnection[]> {
  const connections: RawConnection[] = []
  while (connections.length < count) {
    const first = connections.length
    const wave = await Promise.all(Array.from({ length: WAVE }, () => RawConnection.open(server)))
    for (const [index, connection] of wave.entries()) {
      const text = greeting(first + index)
      if (text !== '') connection.write(text)
    }
    connections.push(...wave)
  }
  return connections
}

async function expectServing(): Promise<void> {
  expect((await call(server, 'GET /readyz')).status).toBe(200)
  const written = await call(server, 'POST /v1/collections/steady/records', { body: { data: { ok: true } } })
  expect(written.status).toBe(201)
  expect((await call(server, `GET /v1/agents/steady/records/${written.body.record_id}`)).status).toBe(200)
}

describe.skipIf(leftOut(missing))('ten thousand streams and thousands of connections, all idle', () => {
  it('do not impair the server: streams stay open and miss no record, other connections are closed, and it stops', async () => {
    for (let n = 0; n < AGENTS; n++) await write(n, { n })
    const handlesBefore = openHandles(server)
    const before = memoryBytes(server)
    // Streams come first, because a later connection may get the port of an ended one.
    const streams = await openMany(STREAMS, streamRequest)
    const silent = await openMany(OTHERS, () => '')
    const kept = await openMany(OTHERS, () => headRequest)
    await all(streams, (text) => text.includes('event: caught_up'))
    expect(heldConnections(server, streams)).toBe(STREAMS)
    await expectServing()
    expect(memoryBytes(server) - before).toBeLessThan(MEMORY_BYTES_MAX)

    // Longer than any timeout of a connection: the first comment arrives after fifteen seconds.
    await all(streams, (text) => text.includes('\n:'))
    for (const { text, ended } of await Promise.all(silent.map((one) => one.ended())))
      expect({ text, ended }).toEqual({ text: '', ended: 'end' })
    for (const { statuses, ended } of await Promise.all(kept.map((one) => one.ended())))
      expect({ statuses, ended }).toEqual({ statuses: [200], ended: 'end' })
    await eventually(() => heldConnections(server, [...silent, ...kept]) === 0)
    expect(heldConnections(server, streams)).toBe(STREAMS)
    await eventually(() => openHandles(server) <= handlesBefore + STREAMS + 4)
    await expectServing()

    for (let n = 0; n < AGENTS; n++) await write(n, { late: n })
    await all(streams, (text) => /"late":\d+\}/.test(text))
    expect(memoryBytes(server) - before).toBeLessThan(MEMORY_BYTES_MAX)
    const exitCode = server.halt()
    const answers = await Promise.all(streams.map((stream) => stream.ended()))
    for (const [n, { text }] of answers.entries()) {
      const received = [...text.matchAll(/"late":(\d+)\}/g)].map((match) => Number(match[1]))
      expect(received).toEqual(isGlobal(n) ? everyAgent : [n % AGENTS])
      // One when the stream was opened, one when it was closed.
      expect(text.match(/retry: 2000/g)).toHaveLength(2)
    }
    expect(await exitCode).toBe(0)
  })

  it('can send another request before their timeout', async () => {
    const connections = await openMany(OTHERS, () => headRequest)
    const answered = (count: number) =>
      Promise.all(connections.map((one) => one.until(({ statuses }) => statuses.length >= count)))
    await answered(1)
    for (const connection of connections) connection.write(headRequest)
    for (const { statuses, ended } of await answered(2))
      expect({ statuses, ended }).toEqual({ statuses: [200, 200], ended: undefined })
    for (const connection of connections) connection.destroy()
    await expectServing()
  })
})
