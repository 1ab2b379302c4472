import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { outcomeOf, register, tally, tryLogin, usualPassword } from '../support/auth/accounts.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import type { TestAnswer, TestServer } from '../support/server/server.js'

/*
 * Lockout and rate limits apply to the whole server, not to each thread (docs/SECURITY.md;
 * docs/OPERATIONS.md).
 */

const ATTEMPTS = 5
const GUESSES = 50
const SHARDS = '4'

/** Servers to stop after the current test. */
const servers: TestServer[] = []

async function start(env: Record<string, string> = {}, dataDir?: string): Promise<TestServer> {
  return startAuthServer({
    env: { SERVICE_SHARDS: SHARDS, SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: String(ATTEMPTS), ...env },
    ...(dataDir !== undefined && { dataDir }),
  })
}

async function startForTest(...how: Parameters<typeof start>): Promise<TestServer> {
  const server = await start(...how)
  servers.push(server)
  return server
}

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop()
})

const guess = (server: TestServer, email: string) => outcomeOf(tryLogin(server, email, 'a wrong guess'))

/** Different spellings of one mailbox. */
const spellings: [string, string[]][] = [
  ['case and blanks around', ['a@b.co', 'A@b.co ', ' a@B.CO', '\ta@b.co', 'A@B.Co', 'a@b.co\n']],
  [
    'composed and decomposed letters',
    ['\u00c5@b.co', 'A\u030a@b.co', '\u00e5@b.co', 'a\u030a@b.co', '\u212b@b.co', '\u00e5@b.co '],
  ],
  [
    'full-width letters of one mailbox',
    [
      '\uff21@b.co',
      '\uff41@b.co',
      '\uff41@\uff42.co',
      '\uff21@\uff22.\uff23\uff2f',
      '\uff41@\uff42.\uff43\uff4f',
      '\uff41@B.co',
    ],
  ],
  [
    'domains in letters and in ASCII',
    [
      'x@b\u00fccher.de',
      'x@xn--bcher-kva.de',
      'x@B\u00dcCHER.de',
      'x@bu\u0308cher.de',
      'X@XN--BCHER-KVA.DE',
      'x@B\u00fccher.De',
    ],
  ],
]

describe('the lockout', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await start()
  })
  afterAll(() => server.stop())

  it.each(['known', 'unknown'])('admits five of fifty simultaneous guesses for a %s e-mail', async (kind) => {
    const email = `${kind}@example.org`
    if (kind === 'known') await register(server, email)
    const outcomes = await Promise.all(Array.from({ length: GUESSES }, () => guess(server, email)))
    expect(tally(outcomes)).toEqual({
      '401 invalid_credentials': ATTEMPTS,
      '429 account_locked': GUESSES - ATTEMPTS,
    })
    const right = await tryLogin(server, email, usualPassword)
    expect([right.status, right.body.code]).toEqual([429, 'account_locked'])
    const wait = Number(right.headers.get('retry-after'))
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(900)
  })

  it('counts guesses at login and at password change together', async () => {
    const { email, token } = await register(server, 'spread@example.org')
    const body = { current_password: 'a wrong guess', new_password: 'some other long password' }
    const change = () => outcomeOf(checkedCall(server, 'POST /v1/auth/password/change', { key: token, body }))
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_none, n) => (n % 2 === 0 ? guess(server, email) : change())),
    )
    expect(tally(outcomes)).toEqual({
      '401 invalid_credentials': ATTEMPTS,
      '429 account_locked': 20 - ATTEMPTS,
    })
  })

  it.each(spellings)('treats spellings as one e-mail: %s', async (_what, forms) => {
    const outcomes: string[] = []
    for (const email of forms) outcomes.push(await guess(server, email))
    expect(outcomes).toEqual([
      ...Array.from({ length: ATTEMPTS }, () => '401 invalid_credentials'),
      '429 account_locked',
    ])
    for (const email of forms) expect(await guess(server, email)).toBe('429 account_locked')
    expect(await guess(server, 'other@b.co')).toBe('401 invalid_credentials')
  })

  it('survives a crash, as does the count of failures', async () => {
    const first = await startForTest()
    await register(first, 'locked@example.org')
    for (let n = 0; n < ATTEMPTS; n++) await guess(first, 'locked@example.org')
    for (let n = 0; n < ATTEMPTS - 1; n++) await guess(first, 'nearly@example.org')
    await first.halt('SIGKILL')
    const second = await startForTest({}, first.dataDir)
    const right = outcomeOf(tryLogin(second, 'locked@example.org', usualPassword))
    expect(await right).toBe('429 account_locked')
    expect(await guess(second, 'nearly@example.org')).toBe('401 invalid_credentials')
    expect(await guess(second, 'nearly@example.org')).toBe('429 account_locked')
  })

  it('expires, and then counts from zero', async () => {
    const short = await startForTest({ SERVICE_AUTH_LOCKOUT_DURATION_SECS: '1' })
    const { email } = await register(short, 'later@example.org')
    for (let n = 0; n < ATTEMPTS; n++) await guess(short, email)
    // Attempts on a locked account do not extend the lockout.
    let outcome = ''
    do outcome = await outcomeOf(tryLogin(short, email, usualPassword))
    while (outcome === '429 account_locked')
    expect(outcome).toBe('200')
    expect(await guess(short, email)).toBe('401 invalid_credentials')
  })

  it('does not apply to magic links', async () => {
    const { email } = await register(server, 'open@example.org')
    for (let n = 0; n < ATTEMPTS; n++) await guess(server, email)
    const sent = await checkedCall(server, 'POST /v1/auth/magic-link/send', { key: null, body: { email } })
    const body = { token: sent.body.token }
    expect(await outcomeOf(checkedCall(server, 'POST /v1/auth/magic-link/verify', { key: null, body }))).toBe(
      '200',
    )
    expect(await guess(server, email)).toBe('429 account_locked')
  })
})

describe('the rate limit of auth requests', () => {
  const RPS = 4
  const BURST = 60
  const rates = {
    SERVICE_AUTH_RATE_LIMIT_RPS: String(RPS),
    SERVICE_AUTH_RATE_LIMIT_BURST: String(BURST),
    SERVICE_TRUSTED_PROXIES: '127.0.0.1/32',
  }

  let server: TestServer
  beforeAll(async () => {
    server = await start(rates)
  })
  afterAll(() => server.stop())

  /** Simultaneous requests from one address, and the most that its bucket can have admitted in that time. */
  async function flood(address: string, routes: readonly string[]) {
    const headers = { 'x-forwarded-for': address }
    const startMs = performance.now()
    const answers = await Promise.all(
      routes.map((route) => checkedCall(server, route, { key: null, headers })),
    )
    const refilled = Math.ceil(((performance.now() - startMs) / 1_000) * RPS)
    const admitted = answers.filter(({ status }) => status !== 429)
    return { answers, admitted: admitted.length, most: RPS + refilled }
  }

  const many = (route: string) => Array.from({ length: BURST }, () => route)

  it('gives a new address tokens for one second, not for a burst', async () => {
    for (const address of ['203.0.113.1', '203.0.113.2', '2001:db8:1::1']) {
      const { admitted, most } = await flood(address, many('GET /v1/auth/status'))
      expect(admitted).toBeGreaterThanOrEqual(RPS)
      expect(admitted).toBeLessThanOrEqual(most)
      expect(most).toBeLessThan(BURST)
    }
  })

  it('is shared by all auth routes, and by all addresses of an IPv6 network', async () => {
    const mixed = Array.from({ length: BURST }, (_none, n) =>
      n % 2 === 0 ? 'GET /v1/auth/status' : 'GET /v1/auth/jwks',
    )
    const { admitted, most } = await flood('203.0.113.9', mixed)
    expect(admitted).toBeLessThanOrEqual(most)
    const startMs = performance.now()
    const spread = await Promise.all(
      Array.from({ length: BURST }, (_none, n) =>
        checkedCall(server, 'GET /v1/auth/status', {
          headers: { 'x-forwarded-for': `2001:db8:2::${n + 1}` },
        }),
      ),
    )
    const refilled = Math.ceil(((performance.now() - startMs) / 1_000) * RPS)
    expect(spread.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(RPS + refilled)
  })

  it('returns 429 with Retry-After and the name of the limit', async () => {
    const { answers } = await flood('203.0.113.3', many('GET /v1/auth/status'))
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    for (const { body, headers } of refused) {
      expect(body.code).toBe('rate_limited')
      expect(headers.get('ratelimit')).toBe('"auth";r=0;t=1')
      expect(headers.get('ratelimit-policy')).toBe(`"auth";q=${BURST};w=${BURST / RPS}`)
      expect(headers.get('retry-after')).toBe('1')
    }
  })

  it('does not limit data routes', async () => {
    const agent = await newAgent(server, 'plain')
    const headers = { 'x-forwarded-for': '203.0.113.4' }
    await flood('203.0.113.4', many('GET /v1/auth/status'))
    const calls = Array.from({ length: BURST }, () =>
      checkedCall(server, `GET /v1/agents/${agent}/head`, { headers }),
    )
    const reads: TestAnswer[] = await Promise.all(calls)
    expect(tally(reads.map(({ status }) => String(status)))).toEqual({ '200': BURST })
  })

  it('ignores the address header of a client that is not a trusted proxy', async () => {
    const { SERVICE_TRUSTED_PROXIES: _proxies, ...direct } = rates
    const server = await startForTest(direct)
    const startMs = performance.now()
    const answers = await Promise.all(
      Array.from({ length: BURST }, (_none, n) =>
        checkedCall(server, 'GET /v1/auth/status', { headers: { 'x-forwarded-for': `203.0.113.${n + 1}` } }),
      ),
    )
    const refilled = Math.ceil(((performance.now() - startMs) / 1_000) * RPS)
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(RPS + refilled)
  })

  it('applies in addition to the global limit, which has its own name', async () => {
    const server = await startForTest({
      SERVICE_RATE_LIMIT_RPS: '2',
      SERVICE_RATE_LIMIT_BURST: '40',
      SERVICE_AUTH_RATE_LIMIT_RPS: '1000',
      SERVICE_AUTH_RATE_LIMIT_BURST: '1000',
    })
    const answers = await Promise.all(many('GET /v1/auth/status').map((route) => checkedCall(server, route)))
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    for (const { headers } of refused) {
      expect(headers.get('ratelimit-policy')).toBe('"global";q=40;w=20')
      expect(headers.get('ratelimit')).toMatch(/^"global";r=0;t=\d+$/)
    }
  })
})
