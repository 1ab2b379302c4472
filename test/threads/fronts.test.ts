import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStream } from '../support/http/events.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { connectBoth, frontOf, FrontConnection } from '../support/server/fronts.js'
import { attemptsMax, sharedByFronts } from '../support/server/shared-by-fronts.js'
import { startServer, type TestServer } from '../support/server/server.js'

/* Several fronts share limits and state: each test calls both over connections whose front it knows. */

let server: TestServer
let fronts: [FrontConnection, FrontConnection]

beforeAll(async () => {
  server = await startAuthServer({
    env: {
      SERVICE_FRONTS: '2',
      SERVICE_STREAMS_PER_PRINCIPAL: '20',
      SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: String(attemptsMax),
    },
  })
  fronts = await connectBoth(server)
})
afterAll(async () => {
  for (const connection of fronts) connection.close()
  await server.stop()
})

describe('connections', () => {
  it('are distributed evenly', async () => {
    const connections = Array.from({ length: 8 }, () => new FrontConnection(server))
    const counts = new Map<string, number>()
    for (const connection of connections) {
      const front = await frontOf(connection)
      counts.set(front, (counts.get(front) ?? 0) + 1)
      connection.close()
    }
    expect([...counts.values()]).toEqual([4, 4])
  })
})

sharedByFronts(() => ({ fronts, servers: [server, server] }))

describe('streams', () => {
  it('are counted once for each principal', async () => {
    const made = await fronts[0].call('POST /v1/admin/api-keys', {
      body: { name: 'one', scopes: ['records:read'] },
    })
    const { key } = made.body
    const open = () =>
      openStream(server, '/v1/agents/default/stream', { key }).then(
        (stream) => stream,
        (error: Error) => error.message,
      )
    const opened = await Promise.all(Array.from({ length: 30 }, open))
    const streams = opened.filter((one) => typeof one !== 'string')
    expect(streams).toHaveLength(20)
    for (const refusal of opened) if (typeof refusal === 'string') expect(refusal).toMatch(/^429 /)
    for (const stream of streams) stream.close()
  })
})

describe('the rate limit of an address', () => {
  it('is counted once for both fronts', async () => {
    const limited = await startServer({
      env: { SERVICE_FRONTS: '2', SERVICE_RATE_LIMIT_RPS: '1', SERVICE_RATE_LIMIT_BURST: '40' },
    })
    try {
      const connections = Array.from({ length: 8 }, () => new FrontConnection(limited))
      // A new address has the tokens of one second.
      const first = await Promise.all(connections.map((one) => one.call('GET /healthz')))
      expect(first.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(2)
      expect(first.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(6)
      for (const connection of connections) connection.close()
    } finally {
      await limited.stop()
    }
  })
})

describe('the end of the server', () => {
  it('ends the streams of both fronts, and exits with 0', async () => {
    const stopped = await startServer({ env: { SERVICE_FRONTS: '2' } })
    const streams = await Promise.all(
      Array.from({ length: 4 }, () => openStream(stopped, '/v1/agents/default/stream')),
    )
    const code = await stopped.halt()
    for (const stream of streams) await stream.ended
    expect(code).toBe(0)
    expect(stopped.stderr()).toBe('')
    await stopped.stop()
  })
})
