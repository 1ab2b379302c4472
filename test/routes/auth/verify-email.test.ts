import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyEmailRoutes } from '../../../src/front/routes/auth/verify-email.js'
import { linkToken, logIn, register } from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused, refusesInvalidBodies } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

const send = 'POST /v1/auth/verify-email/send'
const verify = 'POST /v1/auth/verify-email'
const tokenFor = (email: string) => linkToken(server, 'verify-email/send', email)
const use = (token: string) => checkedCall(server, verify, { key: null, body: { token } })

describe('sending a verify link', () => {
  it('gives the same answer for known, unknown and verified e-mails', async () => {
    const account = await register(server, 'known@example.org')
    await use(await tokenFor(account.email))
    await register(server, 'fresh@example.org')
    for (const email of ['known@example.org', 'fresh@example.org', 'unknown@example.org']) {
      const { status, headers, body } = await checkedCall(server, send, { key: null, body: { email } })
      expect([status, Object.keys(body), body.sent]).toEqual([200, ['sent', 'token'], false])
      expect(headers.get('cache-control')).toBe('no-store')
    }
  })

  it('answers 400 with a pointer for an invalid e-mail', async () => {
    const body = { email: 'absent' }
    const answer = await refused(server, send, { body, outcome: '400 validation_failed' })
    expect(answer.body.errors).toMatchObject([{ pointer: '/email' }])
  })

  refusesInvalidBodies({ server: () => server, route: send, body: { email: 'ada@example.org' } })
})

describe('verifying an e-mail', () => {
  it('is effective immediately, keeps the password and the sessions, and is recorded', async () => {
    const account = await register(server, 'ada@example.org')
    const token = await tokenFor(account.email)
    const { result, records, types } = await auditsOf(server, () => use(token))
    expect(result.body).toEqual({ verified: true, user_id: account.userId, email: account.email })
    expect(types).toEqual(['auth/email_verified'])
    expect(records[0]?.payload).toMatchObject({ user_id: account.userId, outcome: 'success' })
    expect((await checkedCall(server, 'GET /v1/auth/me', { key: account.token })).body.verified).toBe(true)
    expect((await logIn(server, account)).token).not.toBe('')
  })

  it('is possible once', async () => {
    await register(server, 'once@example.org')
    const token = await tokenFor('once@example.org')
    expect((await use(token)).status).toBe(200)
    await refused(server, verify, { body: { token }, outcome: '400 invalid_token' })
  })

  it('answers 400, not 401, to every invalid token', async () => {
    await register(server, 'kinds@example.org')
    const others = [
      '',
      'x',
      'A'.repeat(43),
      await linkToken(server, 'magic-link/send', 'kinds@example.org'),
      await linkToken(server, 'password/reset-request', 'kinds@example.org'),
      await tokenFor('unknown@example.org'),
    ]
    for (const token of others) {
      const { headers } = await checkedCall(server, verify, { key: null, body: { token } })
      expect(headers.get('www-authenticate')).toBeNull()
      await refused(server, verify, { body: { token }, outcome: '400 invalid_token' })
    }
    const { body } = await checkedCall(server, 'GET /v1/auth/users')
    const shown = body.users.find((user: { email: string }) => user.email === 'kinds@example.org')
    expect(shown.verified).toBe(false)
  })

  refusesInvalidBodies({ server: () => server, route: verify, body: { token: 'A'.repeat(43) } })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(verifyEmailRoutes)).toEqual([])
})
