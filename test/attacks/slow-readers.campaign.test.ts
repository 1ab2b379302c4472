import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { scopedKey } from '../support/http/answers.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

/* Clients that request large answers and do not read them. */

const sockets: Socket[] = []
let server: TestServer
let key = ''

beforeAll(async () => {
  server = await startServer({ nodeOptions: probedOptions, env: { SERVICE_SHARDS: '2' } })
  // Letters outside ASCII take the most work.
  const text = 'é'.repeat(2_000)
  for (let from = 0; from < 1_000; from += 250) {
    const records = Array.from({ length: 250 }, (_, n) => ({ data: { n: from + n, text } }))
    await call(server, 'POST /v1/collections/much/records/batch', { body: { records } })
  }
  key = (await scopedKey(server, ['records:read'])).key
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
afterAll(() => server.stop())

/**
 * Sends requests on separate connections, and reads only the first bytes of each answer.
 * @returns the statuses
 */
async function askAndStall(count: number, request: string): Promise<number[]> {
  const { hostname, port } = new URL(server.url)
  const statuses: number[] = []
  for (let n = 0; n < count; n++) {
    const socket = connect({ host: hostname, port: Number(port) })
    let status: number | undefined
    const answered = (one: number) => {
      if (status === undefined) statuses.push(one)
      status = one
    }
    socket.once('data', (bytes: Buffer) => {
      socket.pause()
      answered(Number(/^HTTP\/1\.1 (\d{3})/.exec(bytes.toString('latin1'))?.[1]))
    })
    socket.on('error', () => answered(0))
    socket.on('close', () => answered(0))
    socket.write(request)
    sockets.push(socket)
  }
  await eventually(() => statuses.length >= count)
  return statuses
}

function request(method: string, path: string, body = ''): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n`
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

const latest = () =>
  request('POST', '/v1/agents/much/query', JSON.stringify({ type: 'latest', limit: 1_000 }))

it('200 connections that do not read their pages cause no stall, and other clients are served', async () => {
  await expectHarmless(
    server,
    async () => {
      // The kernel buffers some megabytes for each connection; the rest is bounded, and beyond the bound the
      // answer is 503.
      const statuses = await askAndStall(200, latest())
      expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([])
      const small = await call(server, 'POST /v1/agents/much/query', {
        key,
        body: { type: 'latest', limit: 1 },
      })
      expect(small.status).toBe(200)
      const other = await call(server, 'POST /v1/agents/much/query', {
        body: { type: 'latest', limit: 1_000 },
      })
      expect(other.status).toBe(200)
    },
    { memoryMebibytes: 256 },
  )
})

it('the quota of unread bytes is released when these connections have closed', async () => {
  await eventually(async () => {
    const body = { type: 'latest', limit: 1_000 }
    return (await call(server, 'POST /v1/agents/much/query', { key, body })).status === 200
  })
})

it('the buffers of exports, pages as of a moment and the OpenAPI document are bounded for clients that do not read', async () => {
  await expectHarmless(
    server,
    async () => {
      const exports = await askAndStall(200, request('GET', '/v1/strand/export?agent=much'))
      expect(exports.filter((status) => status === 200).length).toBeLessThanOrEqual(128)
      expect(new Set(exports)).toEqual(new Set([200, 503]))
      await askAndStall(50, request('GET', '/v1/strand/as-of?agent=much&ts=2100-01-01&limit=1000'))
      await askAndStall(200, 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n')
    },
    // The threads of the reader pool start with it.
    { memoryMebibytes: 448 },
  )
})

it('a slow reader gets a large answer completely, and can then send the next request', async () => {
  const { hostname, port } = new URL(server.url)
  const socket = connect({ host: hostname, port: Number(port) })
  sockets.push(socket)
  let text = Buffer.alloc(0)
  socket.on('data', (bytes: Buffer) => {
    text = Buffer.concat([text, bytes])
    socket.pause()
    setImmediate(() => socket.resume())
  })
  const whole = latest().replace(key, testRootKey)
  socket.write(whole)
  const bodyOf = () => {
    const at = text.indexOf('\r\n\r\n')
    const length = Number(/content-length: (\d+)/i.exec(text.toString('latin1', 0, Math.max(at, 0)))?.[1])
    return at >= 0 && text.length >= at + 4 + length ? text.subarray(at + 4, at + 4 + length) : undefined
  }
  await eventually(() => bodyOf() !== undefined)
  const first: unknown = JSON.parse(String(bodyOf()))
  text = Buffer.alloc(0)
  socket.write(whole)
  await eventually(() => bodyOf() !== undefined)
  expect(JSON.parse(String(bodyOf()))).toEqual(first)
})

it('a slow reader gets an answer completely if the connection ends after it, wherever the reader pauses', async () => {
  // The rest of the answer differs between readers; a short rest may still be in the HTTP library when the
  // connection ends.
  for (let wave = 0; wave < 6; wave++) await Promise.all(Array.from({ length: 6 }, () => readsLast()))
})

/** Slowly reads an answer after which the connection ends, and expects that it is complete. */
async function readsLast(): Promise<void> {
  const { hostname, port } = new URL(server.url)
  const socket = connect({ host: hostname, port: Number(port) })
  sockets.push(socket)
  const parts: Buffer[] = []
  socket.on('data', (bytes: Buffer) => {
    parts.push(bytes)
    socket.pause()
    setImmediate(() => socket.resume())
  })
  const body = JSON.stringify({ type: 'latest', limit: 1_000 })
  const head = `POST /v1/agents/much/query HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${testRootKey}\r\n`
  socket.write(
    `${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n` +
      `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  )
  await eventually(() => socket.closed || socket.readableEnded)
  const text = Buffer.concat(parts).toString('latin1')
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200'])
  expect(text.match(/"record_id"/g)?.length).toBeGreaterThan(500)
  expect(text).toMatch(/"next_cursor":"[\w-]+"\}/)
  const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
  expect(text.length - text.indexOf('\r\n\r\n') - 4).toBe(length)
}
