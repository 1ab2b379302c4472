import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawConnection } from '../support/http/raw-http.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

/* Regression: many bodies that never end took gigabytes together, although each of them was bounded. */

/** Bodies without their last bytes. */
interface Unfinished {
  count: number
  head: string
  body: Buffer
}

const kinds: [name: string, about: Unfinished][] = [
  [
    'compressed lines without an end',
    {
      count: 1_000,
      head: '/v1/ingest/a HTTP/1.1\r\nContent-Type: application/x-ndjson\r\nContent-Encoding: gzip',
      body: gzipSync('x'.repeat(840_000)).subarray(0, -8),
    },
  ],
  [
    'compressed bodies that are written atomically',
    {
      count: 600,
      head: '/v1/ingest/a?on_error=reject_all HTTP/1.1\r\nContent-Type: application/x-ndjson\r\nContent-Encoding: gzip',
      body: gzipSync('x'.repeat(8_300_000)).subarray(0, -8),
    },
  ],
  [
    'batches',
    { count: 100, head: '/v1/agents/a/records/batch HTTP/1.1', body: Buffer.alloc(8_000_000, 'x') },
  ],
]

describe.each(['auto', 'node'])('bodies that never end, by the engine %s', (engine) => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer({
      nodeOptions: probedOptions,
      env: { SERVICE_SHARDS: '2', SERVICE_HTTP_ENGINE: engine },
    })
  })
  afterAll(() => server.stop())

  async function begin(head: string, body: Buffer): Promise<RawConnection> {
    const connection = await RawConnection.open(server)
    const about = `Host: a\r\nAuthorization: Bearer ${testRootKey}\r\nContent-Length: 8300000`
    connection.write(`POST ${head}\r\n${about}\r\n\r\n`)
    connection.write(body)
    return connection
  }

  it.each(kinds)('take no more memory than the quota of a key: %s', async (_name, { count, head, body }) => {
    const open: RawConnection[] = []
    await expectHarmless(
      server,
      async () => {
        for (let n = 0; n < count; n++) {
          open.push(await begin(head, body))
          // The bodies are sent one after another, because the test measures only memory.
          await call(server, 'GET /healthz')
        }
        const refused = () => open.filter(({ answer }) => answer.statuses.includes(503)).length
        await expect.poll(refused).toBeGreaterThan(0)
      },
      { memoryMebibytes: 192 },
    )
    for (const connection of open) connection.destroy()
  })
})
