import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { RawConnection } from '../support/http/raw-http.js'
import { startServer, type TestServer } from '../support/server/server.js'

/* Work on a request before its address is counted is not rate-limited, so it must cost little. */

/** A header with many hops, as long as a header block may be. */
const hops = (hop: (n: number) => string) => {
  const all = Array.from({ length: 1_000 }, (_, n) => hop(n))
    .join(',')
    .slice(0, 15_000)
  return `X-Forwarded-For: ${all.slice(0, all.lastIndexOf(','))}\r\n`
}
const costly: [name: string, headers: string][] = [
  ['hundreds of trusted IPv6 hops', hops((n) => `fd00::${n.toString(16)}:1:2:3:4:5`)],
  ['hundreds of trusted IPv6 hops with ports', hops((n) => `[fd00::${n.toString(16)}]:4711`)],
  ['a thousand trusted IPv4 hops', hops((n) => `127.0.${n >> 8}.${n & 255}`)],
  ['one hop without an end', `X-Forwarded-For: ${'1.'.repeat(7_000)}\r\n`],
  ['a hundred lines of hops', 'X-Forwarded-For: fd00::1, fd00::2, fd00::3\r\n'.repeat(90)],
  ['a hundred cookies', `Cookie: ${'a=b; '.repeat(30)}\r\n`.repeat(90)],
  ['a credential without an end', `Authorization: Bearer ${'a.'.repeat(7_000)}\r\n`],
  ['a Host without an end', `X: y\r\nHost: ${'a'.repeat(14_000)}/\r\n`],
]

/** Requests with the address in `X-Forwarded-For`, each with the status that it gets if it is admitted. */
const uncounted: [name: string, request: (address: string) => string, status: number][] = [
  ['malformed requests', (from) => `GET /healthz HTTP/1.1\r\nHost: a b\r\n${from}\r\n`, 400],
  ['preflights', (from) => `OPTIONS /v1/agents HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${from}\r\n`, 204],
  [
    'preflights of no path',
    (from) => `OPTIONS /no HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${from}\r\n`,
    204,
  ],
  ['unknown paths', (from) => `GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${from}\r\n`, 404],
  [
    'chunked ones',
    (from) => `GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n${from}\r\n0\r\n\r\n`,
    400,
  ],
]

async function responseTo(server: TestServer, request: string) {
  const connection = await RawConnection.open(server)
  connection.write(request)
  const { statuses, text } = await connection.ended()
  return { status: statuses[0], bytes: text.length }
}

describe('a request that is not admitted yet', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer({
      nodeOptions: probedOptions,
      env: {
        SERVICE_TRUSTED_PROXIES: '127.0.0.0/8, ::1/128, fd00::/8',
        SERVICE_RATE_LIMIT_RPS: '100000',
        SERVICE_RATE_LIMIT_BURST: '100000',
      },
    })
  })
  afterAll(() => server.stop())

  it.each(costly)('costs little with %s', async (_name, headers) => {
    await expectHarmless(server, async () => {
      // So many requests together that their costs add up before the server handles anything else.
      const request = `GET /none HTTP/1.1\r\nHost: a\r\n${headers}\r\n`.repeat(20)
      const last = 'GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
      for (let n = 0; n < 10; n++) await responseTo(server, request + last)
    })
  })
})

describe('the limiter', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer({
      env: {
        SERVICE_TRUSTED_PROXIES: '127.0.0.0/8, ::1/128',
        SERVICE_RATE_LIMIT_RPS: '1',
        SERVICE_RATE_LIMIT_BURST: '1',
      },
    })
  })
  afterAll(() => server.stop())

  it.each(uncounted)('counts %s, and refuses them with a short answer', async (name, request, status) => {
    const from = `X-Forwarded-For: 198.51.100.${uncounted.findIndex((one) => one[0] === name)}\r\n`
    const answers = await Promise.all(Array.from({ length: 20 }, () => responseTo(server, request(from))))
    expect(answers.map((answer) => answer.status)).toContain(status)
    const refused = answers.filter((answer) => answer.status === 429)
    expect(refused.length).toBeGreaterThan(10)
    for (const { bytes } of refused) expect(bytes).toBeLessThan(1_000)
  })
})
