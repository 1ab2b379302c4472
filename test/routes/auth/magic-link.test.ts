import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { magicLinkRoutes } from '../../../src/front/routes/auth/magic-link.js'
import { linkToken, logIn, register } from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses } from '../../support/http/answers.js'
import { callAs } from '../../support/http/call-as.js'
import { auditsOf, refused, refusesInvalidBodies } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

const send = 'POST /v1/auth/magic-link/send'
const verify = 'POST /v1/auth/magic-link/verify'
const tokenFor = (email: string) => linkToken(server, 'magic-link/send', email)
const use = (token: string) => checkedCall(server, verify, { key: null, body: { token } })

describe('sending a magic link', () => {
  it('returns the token while mail is disabled, and records the request', async () => {
    await register(server, 'ada@example.org')
    const call = { key: null, body: { email: 'Ada@example.org' } }
    const { result, types } = await auditsOf(server, () => checkedCall(server, send, call))
    expect(result.body).toEqual({ sent: false, token: expect.stringMatching(/^[\w-]{43}$/) })
    expect(result.headers.get('cache-control')).toBe('no-store')
    expect(types).toEqual(['auth/magic_link_sent'])
  })

  it('does not immediately record a request for an unknown e-mail', async () => {
    const call = { key: null, body: { email: 'made-up@example.org' } }
    const { result, types } = await auditsOf(server, () => checkedCall(server, send, call))
    expect([result.status, types]).toEqual([200, []])
  })

  it('gives the same answer for known and unknown e-mails', async () => {
    await register(server, 'known@example.org')
    for (const email of ['known@example.org', 'unknown@example.org']) {
      const { status, body } = await checkedCall(server, send, { key: null, body: { email } })
      expect([status, Object.keys(body), body.sent]).toEqual([200, ['sent', 'token'], false])
    }
    const { body } = await checkedCall(server, 'GET /v1/auth/users')
    expect(JSON.stringify(body)).not.toContain('unknown@example.org')
  })

  it('answers 400 with a pointer for an invalid e-mail', async () => {
    const body = { email: 'absent' }
    const answer = await refused(server, send, { body, outcome: '400 validation_failed' })
    expect(answer.body.errors).toMatchObject([{ pointer: '/email' }])
  })

  refusesInvalidBodies({ server: () => server, route: send, body: { email: 'ada@example.org' } })
})

describe('using a magic link', () => {
  it('creates a missing account, and signs in', async () => {
    const token = await tokenFor('new@example.org')
    const { result, records, types } = await auditsOf(server, () => use(token))
    expect(result.headers.get('cache-control')).toBe('no-store')
    // The token was in an answer, so it did not prove the mailbox (docs/adr/0031-proof-of-a-mailbox.md).
    expect(result.body).toMatchObject({ email: 'new@example.org', verified: false })
    const claims = decodeJwt(result.body.token)
    expect(claims).toMatchObject({ sub: result.body.user_id, amr: ['otp'] })
    expect(types).toEqual(['auth/register', 'auth/magic_link_login'])
    expect(records[1]?.payload).toMatchObject({ user_id: claims.sub, sid: claims['sid'] })
  })

  it('signs in to an existing account, and keeps the password because no mailbox was proven', async () => {
    const account = await register(server, 'there@example.org')
    const { body } = await use(await tokenFor(account.email))
    expect(body.user_id).toBe(account.userId)
    expect((await logIn(server, account)).token).not.toBe('')
  })

  it('is valid once', async () => {
    const token = await tokenFor('once@example.org')
    expect((await use(token)).status).toBe(200)
    await refused(server, verify, { body: { token }, outcome: '401 invalid_token' })
  })

  it('gives the same answer to links that are invalid, used, expired or of another kind', async () => {
    await register(server, 'kinds@example.org')
    const used = await tokenFor('kinds@example.org')
    await use(used)
    const others = [
      used,
      '',
      'x',
      'A'.repeat(43),
      `${used}=`,
      await linkToken(server, 'verify-email/send', 'kinds@example.org'),
      await linkToken(server, 'password/reset-request', 'kinds@example.org'),
    ]
    const details = new Set<string>()
    for (const token of others) {
      const { body } = await refused(server, verify, { body: { token }, outcome: '401 invalid_token' })
      details.add(body.detail)
    }
    expect(details.size).toBe(1)
  })

  it('does not use up a link of another kind', async () => {
    await register(server, 'spared@example.org')
    const token = await linkToken(server, 'verify-email/send', 'spared@example.org')
    await refused(server, verify, { body: { token }, outcome: '401 invalid_token' })
    const verified = await checkedCall(server, 'POST /v1/auth/verify-email', { key: null, body: { token } })
    expect(verified.status).toBe(200)
  })

  refusesInvalidBodies({ server: () => server, route: verify, body: { token: 'A'.repeat(43) } })
})

describe('a token in an answer, while mail is off', () => {
  const paths = ['/v1/auth/magic-link/send', '/v1/auth/verify-email/send']
  const body = { email: 'ada@example.org' }
  const token = expect.stringMatching(/^[\w-]{43}$/)
  const own = (scheme = 'http') => `${scheme}://${new URL(server.url).host}`

  it.each([
    ['for a name of another site, which resolves to this machine', { host: 'rebound.example.org' }],
    ['for a name of this machine on its network', { host: '192.0.2.1:8787' }],
    ['for a name that begins like a loopback address', { host: '127.0.0.1.example.org' }],
    ['without a host', { host: '' }],
    ['from a page of another site', { 'sec-fetch-site': 'cross-site' }],
    ['from a page of another port', { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' }],
    ['from a page of another origin', { origin: 'https://evil.example.net' }],
    ['from a page of the other scheme', () => ({ origin: own('https') })],
    ['from a page without an origin', { origin: 'null' }],
    ['by a proxy, of which it has Forwarded', { forwarded: 'for=127.0.0.1' }],
    ['by a proxy, of which it has X-Forwarded-For', { 'x-forwarded-for': '127.0.0.1' }],
    ['by a proxy, of which it has an empty X-Forwarded-For', { 'x-forwarded-for': '' }],
    ['by a proxy, of which it has X-Forwarded-Proto', { 'x-forwarded-proto': 'https' }],
    ['by a proxy, of which it has X-Forwarded-Host', { 'x-forwarded-host': 'localhost' }],
    ['by a proxy, of which it has X-Real-IP', { 'x-real-ip': '127.0.0.1' }],
    ['by a proxy, of which it has Via', { via: '1.1 proxy' }],
    ['by a proxy, of which it has CF-Connecting-IP', { 'cf-connecting-ip': '127.0.0.1' }],
    ['by a proxy, of which it has True-Client-IP', { 'true-client-ip': '127.0.0.1' }],
    ['by a proxy, of which it has X-Envoy-External-Address', { 'x-envoy-external-address': '127.0.0.1' }],
  ])('is for the root key only if the request comes %s', async (_name, given) => {
    const headers: Record<string, string> = typeof given === 'function' ? given() : given
    for (const path of paths) {
      const answer = await callAs(server, { path, body, headers })
      expect(answer, path).toMatchObject({ status: 200, body: { sent: false } })
      expect(answer.body, path).not.toHaveProperty('token')
      const asRoot = { ...headers, authorization: `Bearer ${server.rootKey}` }
      expect(await callAs(server, { path, body, headers: asRoot })).toMatchObject({ body: { token } })
    }
  })

  it.each([
    ['by localhost', { host: 'localhost:1' }],
    ['by an address in capitals', { host: 'LOCALHOST' }],
    ['by IPv6', { host: '[::1]:8787' }],
    ['from the page of the server', () => ({ origin: own(), 'sec-fetch-site': 'same-origin' })],
    ['from the address bar', { 'sec-fetch-site': 'none' }],
  ])('is for any program of this machine: %s', async (_name, given) => {
    const headers: Record<string, string> = typeof given === 'function' ? given() : given
    for (const path of paths)
      expect(await callAs(server, { path, body, headers }), path).toMatchObject({ body: { token } })
    const reset = await callAs(server, { path: '/v1/auth/password/reset-request', body, headers })
    expect(reset.body).toEqual({ sent: false })
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(magicLinkRoutes)).toEqual([])
})
