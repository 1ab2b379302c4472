import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAuthServer } from '../support/server/auth-server.js'
import { eventually } from '../support/eventually.js'
import { RawConnection } from '../support/http/raw-http.js'
import { startServer, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * Connections take file descriptors, which stores, threads of pools and backups also need later. Clients must
 * not be able to take all of them.
 */

const credential = `Authorization: Bearer ${testRootKey}\r\n`

/** Sends a request on an open connection. @returns the status of the answer */
async function statusOn(connection: RawConnection, line: string, body?: unknown) {
  const before = connection.answer
  const text = body === undefined ? '' : JSON.stringify(body)
  connection.write(
    `${line} HTTP/1.1\r\nHost: a\r\n${credential}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
  )
  const answer = await connection.until(({ statuses }) => statuses.length > before.statuses.length)
  return answer.statuses.at(-1)
}

/** Opens connections with a stream each. The server closes connections beyond its limit. */
async function openStreams(server: TestServer, count: number): Promise<RawConnection[]> {
  const opened = await Promise.allSettled(Array.from({ length: count }, () => RawConnection.open(server)))
  const connections = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  for (const connection of connections)
    connection.write(`GET /v1/agents/default/stream HTTP/1.1\r\nHost: a\r\n${credential}\r\n`)
  await Promise.allSettled(connections.map((one) => one.until(({ text }) => text.includes('retry:'))))
  return connections
}

const stillOpen = (connections: readonly RawConnection[]) =>
  connections.filter(({ answer }) => answer.ended === undefined)

describe('a server that may open 256 files', () => {
  let server: TestServer
  let own: RawConnection[]

  beforeAll(async () => {
    server = await startAuthServer({ openFilesMax: 256, env: { SERVICE_SHARDS: '2' } })
    own = await Promise.all(Array.from({ length: 4 }, () => RawConnection.open(server)))
    await Promise.all(own.map((connection) => statusOn(connection, 'GET /healthz')))
  })
  afterAll(() => server.stop())

  it('reserves descriptors for its own needs while 600 clients connect', async () => {
    const [first, second, third, fourth] = own
    if (first === undefined || second === undefined || third === undefined || fourth === undefined) return
    const held = await openStreams(server, 600)
    const open = stillOpen(held).length
    expect(open).toBeGreaterThan(40)
    expect(open).toBeLessThan(200)
    // Each request starts a new thread or opens files of the store.
    expect(await statusOn(first, 'POST /v1/agents/default/records', { data: {} })).toBe(201)
    expect(await statusOn(second, 'GET /v1/strand/checkpoint')).toBe(200)
    expect(
      await statusOn(fourth, 'POST /v1/auth/register', {
        email: 'a@example.org',
        password: 'A long enough pass 1',
      }),
    ).toBe(201)
    expect(await statusOn(third, 'GET /v1/strand/export')).toBe(200)
    await third.until(({ text }) => text.includes('"chain_head"') && text.endsWith('\r\n0\r\n\r\n'))
    for (const connection of held) connection.destroy()
    // Closed connections allow new ones.
    await eventually(async () => {
      const connection = await RawConnection.open(server)
      connection.write('GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
      return (await connection.ended()).statuses[0] === 200
    })
    expect(server.stderr()).toMatch(/too many connections/)
    expect(server.stderr()).not.toMatch(/EMFILE|too many open files/i)
  })
})

describe('SERVICE_CONNECTIONS_MAX', () => {
  it('limits connections below the number that file descriptors would allow', async () => {
    const server = await startServer({ env: { SERVICE_CONNECTIONS_MAX: '20' } })
    const held = await openStreams(server, 60)
    expect(stillOpen(held)).toHaveLength(20)
    for (const connection of held) connection.destroy()
    await server.stop()
  })
})
