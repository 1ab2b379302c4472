import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { passwordRoutes } from '../../../src/front/routes/auth/password.js'
import {
  type Account,
  linkToken,
  logIn,
  outcomeOf,
  register,
  tryLogin,
  usualPassword,
} from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses, scopedKey } from '../../support/http/answers.js'
import { auditsOf, refused, refusesInvalidBodies, acceptsUsersOnly } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { addPasskey, passkeyEnv, signInBy } from '../../support/auth/passkeys.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer
let ada: Account

beforeAll(async () => {
  server = await startAuthServer({ env: { ...passkeyEnv, SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: '3' } })
  ada = await register(server, 'ada@example.org')
})
afterAll(() => server.stop())

const change = 'POST /v1/auth/password/change'
const request = 'POST /v1/auth/password/reset-request'
const reset = 'POST /v1/auth/password/reset'
const next = 'seven green bicycles'
const wrong = 'not the password of anyone'
const changing = (current: string, wanted: string) => ({ current_password: current, new_password: wanted })
const me = (token: string) => outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: token }))
const exchange = (refreshToken: string) =>
  outcomeOf(
    checkedCall(server, 'POST /v1/auth/refresh', { key: null, body: { refresh_token: refreshToken } }),
  )

describe('changing a password', () => {
  it('accepts the new password, ends only the other sessions, and is recorded', async () => {
    const account = await register(server, 'change@example.org')
    const other = await logIn(server, account)
    const call = { key: account.token, body: changing(usualPassword, next) }
    const { result, records, types } = await auditsOf(server, () => checkedCall(server, change, call))
    expect(result.body).toEqual({ changed: true })
    expect(types).toEqual(['auth/password_changed'])
    expect(records[0]?.payload).toMatchObject({ user_id: account.userId, outcome: 'success' })
    expect((await tryLogin(server, account.email, usualPassword)).status).toBe(401)
    expect((await tryLogin(server, account.email, next)).status).toBe(200)
    expect(await me(account.token)).toBe('200')
    expect(await exchange(account.refreshToken)).toBe('200')
    expect(await me(other.token)).toBe('401 token_revoked')
    expect(await exchange(other.refreshToken)).toBe('401 refresh_invalid')
  })

  it('answers 401 to a wrong current password, which counts toward the lockout of logins', async () => {
    const account = await register(server, 'guess@example.org')
    const guess = () => checkedCall(server, change, { key: account.token, body: changing(wrong, next) })
    const { types } = await auditsOf(server, async () => {
      for (let failures = 0; failures < 3; failures++) {
        expect(await outcomeOf(guess())).toBe('401 invalid_credentials')
      }
    })
    expect(types).toEqual(['auth/login_failed', 'auth/login_failed', 'auth/locked'])
    const body = changing(usualPassword, next)
    const locked = await refused(server, change, {
      key: account.token,
      body,
      outcome: '429 account_locked',
    })
    expect(Number(locked.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await tryLogin(server, account.email, usualPassword)).status).toBe(429)
    expect(await me(account.token)).toBe('200')
  })

  it('answers 422 for a weak password, before it checks the current one', async () => {
    for (const current of [usualPassword, wrong]) {
      const call = { key: ada.token, body: changing(current, 'password1'), outcome: '422 weak_password' }
      expect((await refused(server, change, call)).body.reasons).toHaveLength(1)
    }
  })

  it('answers 401 to a user without a password, and sets none', async () => {
    const token = await linkToken(server, 'magic-link/send', 'linked@example.org')
    const { body } = await checkedCall(server, 'POST /v1/auth/magic-link/verify', {
      key: null,
      body: { token },
    })
    const call = { key: body.token, body: changing('', next) }
    expect(await outcomeOf(checkedCall(server, change, call))).toBe('401 invalid_credentials')
    expect((await tryLogin(server, 'linked@example.org', next)).status).toBe(401)
  })

  it('applies one of many concurrent changes', async () => {
    const account = await register(server, 'race@example.org')
    const wanted = Array.from({ length: 6 }, (_none, at) => `${next} ${at}`)
    const codes = await Promise.all(
      wanted.map((one) =>
        outcomeOf(checkedCall(server, change, { key: account.token, body: changing(usualPassword, one) })),
      ),
    )
    expect(codes.filter((code) => code === '200')).toHaveLength(1)
    const winner = wanted[codes.indexOf('200')] ?? ''
    expect(new Set(codes.filter((code) => code !== '200'))).not.toContain('500 internal_error')
    // The refused changes may have locked the e-mail; the password is that of the applied one.
    const resetToken = await linkToken(server, 'password/reset-request', account.email)
    await checkedCall(server, reset, { key: null, body: { token: resetToken, password: winner } })
    expect((await tryLogin(server, account.email, winner)).status).toBe(200)
  })

  refusesInvalidBodies({
    server: () => server,
    route: change,
    body: changing(usualPassword, next),
    key: () => ada.token,
  })
  acceptsUsersOnly({
    server: () => server,
    route: change,
    body: changing(usualPassword, next),
    key: () => ada.token,
  })
})

describe('links that were sent before', () => {
  const kinds = ['magic-link/send', 'verify-email/send', 'password/reset-request'] as const

  /** The outcome of a link of each kind. */
  async function use([magic = '', verify = '', forgotten = '']: readonly string[]): Promise<string[]> {
    const calls = [
      ['POST /v1/auth/magic-link/verify', { token: magic }],
      ['POST /v1/auth/verify-email', { token: verify }],
      [reset, { token: forgotten, password: 'yet another password' }],
    ] as const
    return Promise.all(
      calls.map(([route, body]) => outcomeOf(checkedCall(server, route, { key: null, body }))),
    )
  }

  const dead = ['401 invalid_token', '400 invalid_token', '400 invalid_token']

  it('are invalidated by a change of the password, but not by a refused one', async () => {
    const account = await register(server, 'links-change@example.org')
    const links = await Promise.all(kinds.map((kind) => linkToken(server, kind, account.email)))
    const body = changing(usualPassword, next)
    await checkedCall(server, change, { key: account.token, body: changing(wrong, next) })
    const other = await linkToken(server, 'magic-link/send', account.email)
    expect((await use([other, '', '']))[0]).toBe('200')
    expect((await checkedCall(server, change, { key: account.token, body })).status).toBe(200)
    expect(await use(links)).toEqual(dead)
    expect((await tryLogin(server, account.email, next)).status).toBe(200)
  })

  it('are invalidated by a reset, and later ones are valid', async () => {
    const account = await register(server, 'links-reset@example.org')
    const links = await Promise.all(kinds.map((kind) => linkToken(server, kind, account.email)))
    const token = await linkToken(server, 'password/reset-request', account.email)
    expect((await checkedCall(server, reset, { key: null, body: { token, password: next } })).status).toBe(
      200,
    )
    expect(await use(links)).toEqual(dead)
    const later = await Promise.all(kinds.slice(0, 2).map((kind) => linkToken(server, kind, account.email)))
    expect((await use(later)).slice(0, 2)).toEqual(['200', '200'])
  })
})

describe('requesting a reset', () => {
  it('gives the same answer for known and unknown e-mails, a token only to the root key, and appends nothing', async () => {
    const keys = [null, 'nonsense', ada.token, (await scopedKey(server, ['admin:*'])).key]
    for (const email of ['ada@example.org', 'unknown@example.org']) {
      for (const key of keys)
        expect((await checkedCall(server, request, { key, body: { email } })).body).toEqual({ sent: false })
      const { result, types } = await auditsOf(server, () =>
        checkedCall(server, request, { body: { email } }),
      )
      expect([result.status, Object.keys(result.body), result.body.sent]).toEqual([
        200,
        ['sent', 'token'],
        false,
      ])
      expect(result.headers.get('cache-control')).toBe('no-store')
      expect(types).toEqual([])
    }
  })

  it('answers 400 with a pointer for an invalid e-mail', async () => {
    const body = { email: 'absent' }
    const answer = await refused(server, request, { body, outcome: '400 validation_failed' })
    expect(answer.body.errors).toMatchObject([{ pointer: '/email' }])
  })

  refusesInvalidBodies({ server: () => server, route: request, body: { email: 'ada@example.org' } })
})

describe('resetting a password', () => {
  it('sets the password, ends every session, unlocks the account, and is recorded', async () => {
    const account = await register(server, 'reset@example.org')
    for (let failures = 0; failures < 3; failures++) await tryLogin(server, account.email, wrong)
    expect((await tryLogin(server, account.email, usualPassword)).status).toBe(429)
    const token = await linkToken(server, 'password/reset-request', account.email)
    const call = { key: null, body: { token, password: next } }
    const { result, types } = await auditsOf(server, () => checkedCall(server, reset, call))
    expect(result.body).toEqual({ reset: true, user_id: account.userId, email: account.email })
    expect(types).toContain('auth/password_changed')
    expect((await tryLogin(server, account.email, next)).status).toBe(200)
    expect((await tryLogin(server, account.email, usualPassword)).status).toBe(401)
    expect(await me(account.token)).toBe('401 token_revoked')
    expect(await exchange(account.refreshToken)).toBe('401 refresh_invalid')
  })

  it('removes passkeys only on request, which is recorded', async () => {
    const account = await register(server, 'keys@example.org')
    const passkey = await addPasskey(server, account.token)
    await addPasskey(server, account.token)
    const again = async (more: object) => {
      const token = await linkToken(server, 'password/reset-request', account.email)
      const call = { key: null, body: { token, password: next, ...more } }
      return auditsOf(server, () => checkedCall(server, reset, call))
    }
    for (const more of [{}, { remove_passkeys: false }]) {
      expect((await again(more)).types).toEqual(['auth/password_changed'])
      expect((await signInBy(server, passkey)).status).toBe(200)
    }
    const { result, records, types } = await again({ remove_passkeys: true })
    expect(result.status).toBe(200)
    expect(types).toEqual(['auth/passkey_removed', 'auth/password_changed'])
    expect(records[0]?.payload).toMatchObject({ user_id: account.userId, count: 2 })
    expect(await outcomeOf(signInBy(server, passkey))).toBe('401 passkey_failed')
    expect((await again({ remove_passkeys: true })).types).toEqual(['auth/password_changed'])
  })

  it('is valid once, also for concurrent requests', async () => {
    const account = await register(server, 'once@example.org')
    const token = await linkToken(server, 'password/reset-request', account.email)
    const codes = await Promise.all(
      Array.from({ length: 6 }, (_none, at) =>
        outcomeOf(checkedCall(server, reset, { key: null, body: { token, password: `${next} ${at}` } })),
      ),
    )
    expect(codes.toSorted()).toEqual(['200', ...Array(5).fill('400 invalid_token')])
    const again = { token, password: wrong }
    await refused(server, reset, { body: again, outcome: '400 invalid_token' })
    expect((await tryLogin(server, account.email, `${next} ${codes.indexOf('200')}`)).status).toBe(200)
  })

  it('answers 422 for a weak password, and the link stays valid', async () => {
    const account = await register(server, 'weak@example.org')
    const token = await linkToken(server, 'password/reset-request', account.email)
    const body = { token, password: 'password1' }
    const answer = await refused(server, reset, { body, outcome: '422 weak_password' })
    expect(answer.body.reasons).toHaveLength(1)
    expect((await tryLogin(server, account.email, usualPassword)).status).toBe(200)
    const done = await checkedCall(server, reset, { key: null, body: { token, password: next } })
    expect(done.status).toBe(200)
  })

  it('answers 400 to every invalid token, also of an e-mail without an account', async () => {
    const others = [
      '',
      'A'.repeat(43),
      await linkToken(server, 'password/reset-request', 'unknown@example.org'),
      await linkToken(server, 'magic-link/send', ada.email),
      await linkToken(server, 'verify-email/send', ada.email),
    ]
    for (const token of others) {
      const body = { token, password: next }
      const { headers } = await refused(server, reset, { body, outcome: '400 invalid_token' })
      expect(headers.get('www-authenticate')).toBeNull()
    }
    expect((await tryLogin(server, ada.email, usualPassword)).status).toBe(200)
  })

  refusesInvalidBodies({
    server: () => server,
    route: reset,
    body: { token: 'A'.repeat(43), password: next },
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(passwordRoutes)).toEqual([])
})
