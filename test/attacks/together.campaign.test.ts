import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawConnection } from '../support/http/raw-http.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { startServer, testRootKey, type TestServer } from '../support/server/server.js'

/* Many small requests that arrive together, which the front must not process without a pause. */

const SENT_BYTES = 524_288

const pipelined: [name: string, request: string][] = [
  ['without a credential', 'GET /v1/agents HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['for metrics', 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['for the OpenAPI document', 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['for an unknown path', 'GET /none HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['beyond the rate', 'GET /healthz HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n'],
  [
    'with bodies',
    `POST /v1/agents/a/query HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${testRootKey}\r\nContent-Length: 2\r\n\r\n[]`,
  ],
]

describe.each(['auto', 'node'])('a burst of requests, by the engine %s', (engine) => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer({
      nodeOptions: probedOptions,
      env: {
        SERVICE_SHARDS: '2',
        SERVICE_HTTP_ENGINE: engine,
        SERVICE_TRUSTED_PROXIES: '127.0.0.0/8, ::1/128',
        SERVICE_RATE_LIMIT_EXEMPT: '127.0.0.0/8, ::1/128',
        SERVICE_RATE_LIMIT_RPS: '1',
        SERVICE_RATE_LIMIT_BURST: '1',
      },
    })
  })
  afterAll(() => server.stop())

  it.each(pipelined)('stalls no other client if the requests are pipelined: %s', async (_name, request) => {
    await expectHarmless(server, async () => {
      for (let n = 0; n < 6; n++) {
        const connection = await RawConnection.open(server)
        connection.write(request.repeat(SENT_BYTES / request.length))
        await connection.ended()
      }
    })
  })

  it('stalls no other client if 200 bodies become complete together', async () => {
    const body = `{"type":"time_range","where":[${'1,'.repeat(32_000)}1]}`
    const head = `POST /v1/agents/a/query HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${testRootKey}`
    const connections: RawConnection[] = []
    for (let n = 0; n < 200; n++) {
      const connection = await RawConnection.open(server)
      connection.write(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, -1)}`)
      connections.push(connection)
    }
    await expectHarmless(server, async () => {
      for (const connection of connections) connection.write(body.slice(-1))
      for (const connection of connections) await connection.until(({ statuses }) => statuses.length > 0)
    })
    expect(new Set(connections.flatMap(({ answer }) => answer.statuses))).toEqual(new Set([400]))
    for (const connection of connections) connection.destroy()
  })
})
