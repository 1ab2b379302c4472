import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loginRoutes } from '../../../src/front/routes/auth/login.js'
import { linkToken, register, tryLogin, usualPassword } from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused, refusesInvalidBodies } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: '3' } })
  await register(server, 'ada@example.org')
})
afterAll(() => server.stop())

const route = 'POST /v1/auth/login'
const wrong = 'not the password of anyone'

/** A refusal without what differs from request to request. */
const withoutId = ({ request_id: _id, ...body }: Record<string, unknown>) => body

describe('a login by password', () => {
  it('opens a session, and records it', async () => {
    const { result, records, types } = await auditsOf(server, () =>
      tryLogin(server, ' ADA@example.org', usualPassword),
    )
    expect(result.status).toBe(200)
    expect(result.headers.get('cache-control')).toBe('no-store')
    const { sub, sid, amr } = decodeJwt(result.body.token)
    expect(amr).toEqual(['pwd'])
    expect(types).toEqual(['auth/login'])
    expect(records[0]?.payload).toMatchObject({ user_id: sub, sid, outcome: 'success' })
    const { body } = await checkedCall(server, 'GET /v1/auth/sessions', { key: result.body.token })
    expect(body.sessions.map((one: { sid: string }) => one.sid)).toContain(sid)
  })

  it('accepts a password in any equivalent Unicode form', async () => {
    await register(server, 'forms@example.org', 'pa\u00df\u00e5wort!')
    expect((await tryLogin(server, 'forms@example.org', 'pa\u00dfa\u030awort!')).status).toBe(200)
  })

  it('gives the same answer to a wrong password, an unknown e-mail and an account without a password', async () => {
    await register(server, 'bob@example.org')
    const link = await linkToken(server, 'magic-link/send', 'linked@example.org')
    await checkedCall(server, 'POST /v1/auth/magic-link/verify', { key: null, body: { token: link } })
    const bodies = []
    for (const email of ['bob@example.org', 'absent@example.org', 'linked@example.org']) {
      const { status, body } = await tryLogin(server, email, wrong)
      expect([status, body.code]).toEqual([401, 'invalid_credentials'])
      bodies.push(withoutId(body))
    }
    expect(bodies).toEqual(Array(3).fill(bodies[0]))
  })

  it('answers 401, not 422 or 400, for passwords that no account can have', async () => {
    for (const [place, impossible] of ['', 'x', 'y'.repeat(60_000)].entries()) {
      const { status, body } = await tryLogin(server, `odd-${place}@example.org`, impossible)
      expect([status, body.code]).toEqual([401, 'invalid_credentials'])
    }
  })

  it('answers 400 with a pointer for an invalid e-mail, without counting a failure', async () => {
    for (const email of ['', 'ada', 'ada@example.org\u0000']) {
      const body = { email, password: wrong }
      const answer = await refused(server, route, { body, outcome: '400 validation_failed' })
      expect(answer.body.errors).toMatchObject([{ pointer: '/email' }])
    }
  })

  refusesInvalidBodies({
    server: () => server,
    route,
    body: { email: 'ada@example.org', password: usualPassword },
  })
})

describe('the lockout', () => {
  it.each([
    ['known', 'locked@example.org', true],
    ['unknown', 'never-seen@example.org', false],
  ])('starts after the allowed failures, for a %s e-mail', async (_what, email, known) => {
    if (known) await register(server, email)
    const { types } = await auditsOf(server, async () => {
      for (let failures = 0; failures < 3; failures++) {
        expect((await tryLogin(server, email, wrong)).body.code).toBe('invalid_credentials')
      }
    })
    // Failures of unknown e-mails are recorded together, after a minute.
    expect(types).toEqual(known ? ['auth/login_failed', 'auth/login_failed', 'auth/locked'] : [])
    for (const password of [wrong, usualPassword]) {
      const locked = await refused(server, route, {
        body: { email, password },
        outcome: '429 account_locked',
      })
      const retryAfterSecs = Number(locked.headers.get('retry-after'))
      expect(retryAfterSecs).toBeGreaterThan(800)
      expect(retryAfterSecs).toBeLessThanOrEqual(900)
      expect(locked.body).not.toHaveProperty('user_id')
    }
  })

  it('does not reveal whether an e-mail is known', async () => {
    const bodies = []
    for (const email of ['locked@example.org', 'never-seen@example.org']) {
      bodies.push(withoutId((await tryLogin(server, email, wrong)).body))
    }
    expect(bodies[0]).toEqual(bodies[1])
  })

  it('does not affect magic links or other e-mails', async () => {
    const token = await linkToken(server, 'magic-link/send', 'locked@example.org')
    const opened = await checkedCall(server, 'POST /v1/auth/magic-link/verify', {
      key: null,
      body: { token },
    })
    expect(opened.status).toBe(200)
    expect((await tryLogin(server, 'ada@example.org', usualPassword)).status).toBe(200)
  })

  it('appears in the list of users', async () => {
    const { body } = await checkedCall(server, 'GET /v1/auth/users')
    const lockedOf = (email: string) =>
      body.users.find((user: { email: string }) => user.email === email).locked_until_ms
    expect(lockedOf('locked@example.org')).toBeGreaterThan(Date.now())
    expect(lockedOf('ada@example.org')).toBeNull()
  })

  it('resets the count after a success', async () => {
    await register(server, 'clumsy@example.org')
    for (let round = 0; round < 3; round++) {
      for (let failures = 0; failures < 2; failures++) {
        expect((await tryLogin(server, 'clumsy@example.org', wrong)).status).toBe(401)
      }
      expect((await tryLogin(server, 'clumsy@example.org', usualPassword)).status).toBe(200)
    }
  })

  it('allows no more concurrent attempts than sequential ones', async () => {
    const guesses = Array.from({ length: 20 }, () => tryLogin(server, 'many@example.org', wrong))
    const codes = (await Promise.all(guesses)).map(({ body }) => body.code)
    expect(codes.filter((code) => code === 'invalid_credentials')).toHaveLength(3)
    expect(codes.filter((code) => code === 'account_locked')).toHaveLength(17)
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(loginRoutes)).toEqual([])
})
