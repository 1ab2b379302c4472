import { afterEach, describe, expect, it } from 'vitest'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

/* The headers of answers about rate limits and connections. */

let server: TestServer

afterEach(() => server.stop())

const limited = {
  SERVICE_RATE_LIMIT_RPS: '50',
  SERVICE_RATE_LIMIT_BURST: '100',
  SERVICE_TRUSTED_PROXIES: '127.0.0.0/8, ::1/128',
}

async function start(env: Record<string, string> = {}): Promise<void> {
  server = await startServer({ env })
}

/** The rate-limit headers of an answer to a client whose address a proxy forwards. */
async function rateLimitOf(route: string, address: string, body?: unknown) {
  const { status, headers } = await call(server, route, {
    headers: { 'X-Forwarded-For': address },
    ...(body !== undefined && { body }),
  })
  return { status, left: headers.get('ratelimit'), policy: headers.get('ratelimit-policy') }
}

/** Sends a request on a new connection. @returns the head of the answer */
async function headOf(request: string): Promise<string> {
  const connection = await RawConnection.open(server)
  connection.write(request)
  const { text } = await connection.until((answer) => answer.text.includes('\r\n\r\n'))
  connection.destroy()
  return text.slice(0, text.indexOf('\r\n\r\n'))
}

const credential = `Host: a\r\nAuthorization: Bearer ${testRootKey}\r\n`

describe('RateLimit', () => {
  it('is in answers of 200 and 201 and in refusals, with the remaining requests', async () => {
    await start(limited)
    const policy = '"global";q=100;w=2'
    const write = { data: { n: 1 } }
    const from = '203.0.113.1'
    expect(await rateLimitOf('POST /v1/collections/a/records', from, write)).toMatchObject({
      status: 201,
      policy,
    })
    const left = Array.from({ length: 3 }, () => rateLimitOf('GET /v1/agents/a/head', '203.0.113.2'))
    const lefts = (await Promise.all(left)).map((headers) => headers.left)
    // The bucket is refilled while the requests run, so a later answer may have a slightly larger number.
    for (const one of lefts) expect(one).toMatch(/^"global";r=(4[7-9]|50)$/)
    expect(await rateLimitOf('GET /v1/agents/none/head', from)).toMatchObject({ status: 404, policy })
    expect(await rateLimitOf('GET /healthz', from)).toMatchObject({ status: 200, policy })
    expect(await rateLimitOf('GET /v1/strand/export?agent=a', from)).toMatchObject({ status: 200, policy })
    expect(await rateLimitOf('GET /openapi.json', from)).toMatchObject({ status: 200, policy })
  })

  it('contains both limits on auth routes', async () => {
    await start({ ...limited, SERVICE_AUTH_RATE_LIMIT_RPS: '2', SERVICE_AUTH_RATE_LIMIT_BURST: '4' })
    const answer = await rateLimitOf('GET /v1/auth/status', '203.0.113.1')
    expect(answer).toMatchObject({ status: 200, policy: '"global";q=100;w=2, "auth";q=4;w=2' })
    expect(answer.left).toMatch(/^"global";r=\d+, "auth";r=1$/)
  })

  it('is absent if there is no limit', async () => {
    await start()
    expect(await rateLimitOf('GET /healthz', '203.0.113.1')).toEqual({
      status: 200,
      left: null,
      policy: null,
    })
  })
})

describe('SERVICE_RATE_LIMIT_EXEMPT', () => {
  const tight = { SERVICE_RATE_LIMIT_RPS: '1', SERVICE_RATE_LIMIT_BURST: '1' }
  const exempt = { SERVICE_RATE_LIMIT_EXEMPT: '198.51.100.0/24, 2001:db8:1::/48' }

  async function statuses(route: string, address: string): Promise<number[]> {
    const answers = Array.from({ length: 5 }, () => rateLimitOf(route, address))
    return (await Promise.all(answers)).map(({ status }) => status).toSorted()
  }

  it('exempts the listed addresses from the limit, and no others', async () => {
    await start({ ...limited, ...tight, ...exempt })
    expect(await statuses('GET /healthz', '198.51.100.7')).toEqual([200, 200, 200, 200, 200])
    expect(await statuses('GET /healthz', '2001:db8:1::7')).toEqual([200, 200, 200, 200, 200])
    expect(await rateLimitOf('GET /healthz', '198.51.100.7')).toEqual({
      status: 200,
      left: null,
      policy: null,
    })
    expect((await statuses('GET /healthz', '198.51.101.7')).at(-1)).toBe(429)
    expect((await statuses('GET /healthz', '2001:db8:2::7')).at(-1)).toBe(429)
    // Only the last hop was written by the trusted proxy; a client can forge the ones before it.
    expect((await statuses('GET /healthz', '198.51.100.7, 203.0.113.9')).at(-1)).toBe(429)
  })

  it('ignores a header that no trusted proxy sent', async () => {
    await start({ ...tight, ...exempt })
    expect((await statuses('GET /healthz', '198.51.100.7')).at(-1)).toBe(429)
  })

  it('does not exempt from the limit of auth routes', async () => {
    const auth = { SERVICE_AUTH_RATE_LIMIT_RPS: '1', SERVICE_AUTH_RATE_LIMIT_BURST: '1' }
    await start({ ...limited, ...tight, ...exempt, ...auth })
    expect((await statuses('GET /v1/auth/status', '198.51.100.7')).at(-1)).toBe(429)
  })
})

describe('Keep-Alive', () => {
  const secsOf = (head: string) => Number(/^Keep-Alive: timeout=(\d+)$/m.exec(head.replaceAll('\r', ''))?.[1])

  it('announces a time that ends before the server closes the connection', async () => {
    await start()
    const connections = await Promise.all(Array.from({ length: 8 }, () => RawConnection.open(server)))
    const openSecs = connections.map(async (connection, n) => {
      connection.write(`GET ${n % 2 === 0 ? '/healthz' : '/v1/agents'} HTTP/1.1\r\n${credential}\r\n`)
      const { text } = await connection.until((answer) => answer.text.includes('\r\n\r\n'))
      const fromMs = performance.now()
      await connection.ended()
      return (performance.now() - fromMs) / 1_000 - secsOf(text)
    })
    // A delay of this process makes the measured time longer, never shorter.
    for (const spare of await Promise.all(openSecs)) expect(spare).toBeGreaterThan(1)
  })

  it('is in refusals, large answers and streamed ones too, but not if the connection ends', async () => {
    await start()
    await call(server, 'POST /v1/collections/a/records', { body: { data: { text: 'x'.repeat(50_000) } } })
    const persistent = [
      '/none',
      '/v1/collections/a/latest?limit=1',
      '/v1/strand/export?agent=a',
      '/openapi.json',
    ]
    for (const path of persistent)
      expect(secsOf(await headOf(`GET ${path} HTTP/1.1\r\n${credential}\r\n`))).toBeGreaterThan(0)
    const ending = ['Connection: close\r\n', 'Connection: TE, Close\r\n', 'Host: b\r\n']
    for (const header of ending)
      expect(await headOf(`GET /healthz HTTP/1.1\r\n${credential}${header}\r\n`)).not.toContain('Keep-Alive')
    const chunked = `POST /v1/collections/a/records HTTP/1.1\r\n${credential}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`
    expect(await headOf(chunked)).not.toContain('Keep-Alive')
  })
})

describe('an answer of 507', () => {
  it('has a Retry-After, on data and auth routes', async () => {
    await start({ SERVICE_MIN_FREE_BYTES: String(Number.MAX_SAFE_INTEGER) })
    for (const route of ['POST /v1/collections/a/records', 'POST /v1/agents', 'POST /v1/ingest/a']) {
      const { status, headers } = await call(server, route, { body: { data: {} } })
      expect({ route, status, retry: headers.get('retry-after') }).toEqual({
        route,
        status: 507,
        retry: '30',
      })
    }
  })
})
