import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { userRoutes } from '../../../src/front/routes/auth/users.js'
import {
  type Account,
  linkToken,
  logIn,
  outcomeOf,
  register,
  registerMany,
  tryLogin,
  usualPassword,
} from '../../support/auth/accounts.js'
import { checkedCall, scopedKey, untestedSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused, refusesInvalidBodies, acceptsAdminsOnly } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer
let ada: Account

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_AUTH_METADATA_MAX_BYTES: '256' } })
  ada = await register(server, 'ada@example.org')
})
afterAll(() => server.stop())

const list = 'GET /v1/auth/users'
const updateOf = (email: string) => `PATCH /v1/auth/users/${email}/app-metadata`
const set = (email: string, metadata: unknown) => checkedCall(server, updateOf(email), { body: { metadata } })
const rootKey = () => server.rootKey

describe('listing users', () => {
  it('lists each user, ordered by e-mail, without passwords', async () => {
    const { body, text } = await checkedCall(server, list)
    expect(body).toMatchObject({ total: 1, next_cursor: null })
    expect(body.users).toEqual([
      {
        user_id: ada.userId,
        email: ada.email,
        verified: false,
        app_metadata: {},
        user_metadata: {},
        created_at_ms: expect.any(Number),
        last_login_at_ms: expect.any(Number),
        email_hmac: expect.stringMatching(/^[0-9a-f]{64}$/),
        locked_until_ms: null,
        passkeys: 0,
        mailbox_proven: false,
      },
    ])
    expect(text).not.toMatch(/password|argon2|hash/i)
  })

  it('lists every user once, page by page, with any page size', async () => {
    const emails = Array.from(
      { length: 11 },
      (_none, at) => `page-${String(at).padStart(2, '0')}@example.org`,
    )
    await registerMany(server, emails)
    const expected = [ada.email, ...emails].toSorted()
    for (const limit of [1, 5, 12, 1_000]) {
      const seen: string[] = []
      let cursor: string | null = ''
      while (cursor !== null) {
        const query: string = cursor === '' ? '' : `&cursor=${cursor}`
        const { body } = await checkedCall(server, `${list}?limit=${limit}${query}`)
        expect(body.total).toBe(12)
        expect(body.users.length).toBeLessThanOrEqual(limit)
        seen.push(...body.users.map((user: { email: string }) => user.email))
        cursor = body.next_cursor
      }
      expect(seen).toEqual(expected)
    }
  })

  it.each(['limit=0', 'limit=1001', 'limit=x', 'cursor=x', 'cursor=', `cursor=${'x'.repeat(3_000)}`])(
    'answers 400 for ?%s',
    async (query) => {
      await refused(server, `${list}?${query}`, { key: rootKey(), outcome: '400 validation_failed' })
    },
  )

  it('answers 400 for cursors without a valid e-mail', async () => {
    for (const held of ['', '\u0000', 'zzz', 'x'.repeat(5_000), '../user']) {
      const cursor = Buffer.from(JSON.stringify(['users', held])).toString('base64url')
      const { status } = await checkedCall(server, `${list}?cursor=${cursor}`)
      expect([held.slice(0, 9), status]).toEqual([held.slice(0, 9), held === '' ? 200 : 400])
    }
  })

  it('finds users by the beginning of their e-mails, ignoring case, page by page', async () => {
    const found = async (prefix: string, more = '') => {
      const { body } = await checkedCall(server, `${list}?prefix=${encodeURIComponent(prefix)}${more}`)
      return { emails: body.users.map((user: { email: string }) => user.email), ...body }
    }
    const all = await found('PAGE-0')
    expect(all.emails).toEqual(Array.from({ length: 10 }, (_none, at) => `page-0${at}@example.org`))
    expect([all.total, all.next_cursor]).toEqual([10, null])
    const first = await found('page-0', '&limit=7')
    const rest = await found('page-0', `&limit=7&cursor=${first.next_cursor}`)
    expect([...first.emails, ...rest.emails]).toEqual(all.emails)
    expect((await found('page-03@example.org')).total).toBe(1)
    for (const absent of ['page-03@example.org.', 'zzz', '%', '_', '~'])
      expect([absent, (await found(absent)).emails]).toEqual([absent, []])
    // A cursor of another search does not leave this one.
    expect((await found('ada', `&cursor=${first.next_cursor}`)).emails).toEqual([])
  })

  it.each(['\u0000', 'a b', 'a\n', '\u00ff\u0000', 'x'.repeat(255), 'é'.repeat(200)])(
    'answers 400 for an invalid prefix: %j',
    async (prefix) => {
      const route = `${list}?prefix=${encodeURIComponent(prefix)}`
      await refused(server, route, { key: rootKey(), outcome: '400 validation_failed' })
    },
  )

  it('finds one user by id', async () => {
    const named = async (query: string) => (await checkedCall(server, `${list}?${query}`)).body
    const found = await named(`user_id=${ada.userId}`)
    expect(found).toMatchObject({ total: 1, next_cursor: null, users: [{ email: ada.email }] })
    expect((await named(`user_id=${ada.userId}&prefix=page`)).users).toEqual([])
    expect(await named(`user_id=usr_${'0'.repeat(32)}`)).toMatchObject({ users: [], total: 0 })
    for (const id of ['', 'x', 'usr_', `${ada.userId}x`, 'usr_%00'])
      await refused(server, `${list}?user_id=${id}`, { key: rootKey(), outcome: '400 validation_failed' })
  })

  it('shows the same e-mail digest as audit records', async () => {
    const account = await register(server, 'named@example.org')
    const { records } = await auditsOf(server, () => tryLogin(server, account.email, 'a wrong password'))
    const { body } = await checkedCall(server, `${list}?prefix=named`)
    expect(records.map(({ payload }) => payload['email_hmac'])).toEqual([body.users[0].email_hmac])
    expect(records[0]?.payload).toMatchObject({ outcome: 'failure' })
    expect((await checkedCall(server, `DELETE /v1/auth/users/${account.email}`)).status).toBe(200)
  })

  it('accepts a scoped key with admin:*', async () => {
    const { key } = await scopedKey(server, ['admin:*'])
    expect((await checkedCall(server, list, { key })).status).toBe(200)
  })

  acceptsAdminsOnly({ server: () => server, route: list, user: () => ada.token })
})

describe('the sessions of a user', () => {
  const sessionsOf = (email: string) => `GET /v1/auth/users/${email}/sessions`

  it('are listed without tokens, the newest first', async () => {
    const account = await register(server, 'signed-in@example.org')
    const other = await logIn(server, account)
    const { body, text } = await checkedCall(server, sessionsOf('SIGNED-IN@example.org'))
    expect(body).toMatchObject({ user_id: account.userId, email: account.email })
    const sids = [other, account].map(({ token }) => decodeJwt(token)['sid'])
    expect(body.sessions.map(({ sid }: { sid: string }) => sid)).toEqual(sids)
    expect(Object.keys(body.sessions[0]).sort()).toEqual(['amr', 'created_at_ms', 'last_used_at_ms', 'sid'])
    expect(text).not.toContain(other.token)
    await checkedCall(server, `DELETE /v1/auth/users/${account.email}`)
    await refused(server, sessionsOf(account.email), { key: rootKey(), outcome: '404 not_found' })
  })

  it('answers 404 for an unknown user', async () => {
    for (const email of ['absent@example.org', 'no-address'])
      await refused(server, sessionsOf(email), { key: rootKey(), outcome: '404 not_found' })
  })

  acceptsAdminsOnly({ server: () => server, route: sessionsOf('ada@example.org'), user: () => ada.token })
})

describe('deleting a user', () => {
  it('immediately ends everything that the user had, and is recorded', async () => {
    const account = await register(server, 'gone@example.org')
    const other = await logIn(server, account)
    const links = [
      ['verify-email', await linkToken(server, 'verify-email/send', account.email)],
      ['password/reset', await linkToken(server, 'password/reset-request', account.email)],
    ] as const
    const { result, records, types } = await auditsOf(server, () =>
      checkedCall(server, `DELETE /v1/auth/users/${account.email}`),
    )
    expect(result.body).toEqual({ deleted: true, user_id: account.userId, email: account.email })
    expect(types).toEqual(['auth/user_deleted'])
    expect(records[0]?.payload).toMatchObject({ user_id: account.userId, outcome: 'success' })
    for (const token of [account.token, other.token]) {
      await refused(server, 'GET /v1/auth/me', { key: token, outcome: '401 token_revoked' })
    }
    for (const refresh_token of [account.refreshToken, other.refreshToken]) {
      const body = { refresh_token }
      await refused(server, 'POST /v1/auth/refresh', { body, outcome: '401 refresh_invalid' })
    }
    for (const [path, token] of links) {
      const body = path === 'verify-email' ? { token } : { token, password: usualPassword }
      await refused(server, `POST /v1/auth/${path}`, { body, outcome: '400 invalid_token' })
    }
    expect(await outcomeOf(tryLogin(server, account.email, usualPassword))).toBe('401 invalid_credentials')
    expect((await checkedCall(server, list)).text).not.toContain(account.email)
  })

  it('frees the e-mail for another account, which has nothing of the first one', async () => {
    const first = await register(server, 'again@example.org')
    await set(first.email, { role: 'admin' })
    await checkedCall(server, `DELETE /v1/auth/users/${first.email}`)
    const second = await register(server, first.email, 'another good password')
    expect(second.userId).not.toBe(first.userId)
    expect(decodeJwt(second.token)['app_metadata']).toEqual({})
    expect(await outcomeOf(tryLogin(server, first.email, usualPassword))).toBe('401 invalid_credentials')
  })

  it('finds the user by any spelling of the e-mail', async () => {
    await register(server, 'plus+tag@example.org')
    const { status, body } = await checkedCall(server, 'DELETE /v1/auth/users/%20PLUS%2Btag%40Example.ORG')
    expect([status, body.email]).toEqual([200, 'plus+tag@example.org'])
  })

  it.each(['absent@example.org', 'absent', '%00', '..%2Fada@example.org', 'x'.repeat(3_000)])(
    'answers 404 for %s',
    async (email) => {
      const outcome = '404 not_found'
      await refused(server, `DELETE /v1/auth/users/${email}`, { key: rootKey(), outcome })
      await refused(server, updateOf(email), { key: rootKey(), body: { metadata: {} }, outcome })
    },
  )

  acceptsAdminsOnly({
    server: () => server,
    route: 'DELETE /v1/auth/users/ada@example.org',
    user: () => ada.token,
  })
})

describe('unlocking a user', () => {
  const unlockOf = (email: string) => `POST /v1/auth/users/${email}/unlock`

  it('lets a locked user sign in immediately, and is recorded with the pending failures', async () => {
    const account = await register(server, 'locked@example.org')
    for (let tries = 0; tries < 5; tries++) await tryLogin(server, account.email, 'a wrong password')
    expect(await outcomeOf(tryLogin(server, account.email, usualPassword))).toBe('429 account_locked')
    const { result, records, types } = await auditsOf(server, () =>
      checkedCall(server, unlockOf(account.email)),
    )
    expect(result.body).toEqual({ unlocked: true, user_id: account.userId, email: account.email })
    expect(types.at(-1)).toBe('auth/unlocked')
    expect(records.at(-1)?.payload).toMatchObject({ user_id: account.userId, outcome: 'success' })
    expect((await tryLogin(server, account.email, usualPassword)).status).toBe(200)
    expect((await checkedCall(server, `${list}?prefix=locked`)).body.users[0].locked_until_ms).toBeNull()
  })

  it('counts failures below the lockout, and records nothing if there are none', async () => {
    const account = await register(server, 'failed@example.org')
    for (let tries = 0; tries < 3; tries++) await tryLogin(server, account.email, 'a wrong password')
    const { result, records, types } = await auditsOf(server, () =>
      checkedCall(server, unlockOf(account.email)),
    )
    expect(result.body).toMatchObject({ unlocked: false })
    // The first failure has a separate record.
    expect(types).toEqual(['auth/login_failed', 'auth/unlocked'])
    expect(records[0]?.payload).toMatchObject({ user_id: account.userId, outcome: 'failure', count: 2 })
    const again = await auditsOf(server, () => checkedCall(server, unlockOf(account.email)))
    expect(again.result.body).toMatchObject({ unlocked: false })
    expect(again.types).toEqual([])
  })

  it('answers 404 for an unknown user', async () => {
    for (const email of ['absent@example.org', 'no-address'])
      await refused(server, unlockOf(email), { key: rootKey(), outcome: '404 not_found' })
  })

  acceptsAdminsOnly({ server: () => server, route: unlockOf('ada@example.org'), user: () => ada.token })
})

describe('ending the sessions of a user', () => {
  const logoutOf = (email: string) => `POST /v1/auth/users/${email}/logout`

  it('refuses all tokens, and is recorded with the number of sessions', async () => {
    const account = await register(server, 'signed-out@example.org')
    const other = await logIn(server, account)
    const { result, records, types } = await auditsOf(server, () =>
      checkedCall(server, logoutOf(account.email)),
    )
    expect(result.body).toEqual({ sessions_ended: 2, user_id: account.userId, email: account.email })
    expect(types).toEqual(['auth/sessions_ended'])
    expect(records[0]?.payload).toMatchObject({ user_id: account.userId, outcome: 'success', count: 2 })
    for (const token of [account.token, other.token])
      await refused(server, 'GET /v1/auth/me', { key: token, outcome: '401 token_revoked' })
    for (const refresh_token of [account.refreshToken, other.refreshToken])
      await refused(server, 'POST /v1/auth/refresh', {
        body: { refresh_token },
        outcome: '401 refresh_invalid',
      })
    expect((await tryLogin(server, account.email, usualPassword)).status).toBe(200)
    expect((await checkedCall(server, logoutOf(account.email))).body.sessions_ended).toBe(1)
    const none = await auditsOf(server, () => checkedCall(server, logoutOf(account.email)))
    expect([none.result.body.sessions_ended, none.types]).toEqual([0, []])
  })

  it('answers 404 for an unknown user', async () => {
    for (const email of ['absent@example.org', 'no-address'])
      await refused(server, logoutOf(email), { key: rootKey(), outcome: '404 not_found' })
  })

  acceptsAdminsOnly({ server: () => server, route: logoutOf('ada@example.org'), user: () => ada.token })
})

describe('replacing app_metadata', () => {
  it('replaces the whole object, is recorded without it, and is only in later tokens', async () => {
    const account = await register(server, 'bob@example.org')
    await set(account.email, { role: 'reader', tenant: 'first' })
    const { result, records, types } = await auditsOf(server, () => set(account.email, { role: 'wörter' }))
    expect(result.body).toEqual({ email: account.email, app_metadata: { role: 'wörter' } })
    expect(types).toEqual(['auth/app_metadata_updated'])
    expect(JSON.stringify(records)).not.toContain('wörter')
    expect(decodeJwt(account.token)['app_metadata']).toEqual({})
    expect((await checkedCall(server, 'GET /v1/auth/me', { key: account.token })).status).toBe(200)
    expect(decodeJwt((await logIn(server, account)).token)['app_metadata']).toEqual({ role: 'wörter' })
  })

  it('answers 422 for more bytes than both objects may have together', async () => {
    const account = await register(server, 'bytes@example.org')
    const own = { metadata: { k: 'x'.repeat(92) } }
    await checkedCall(server, 'PATCH /v1/auth/me/user-metadata', { key: account.token, body: own })
    expect((await set(account.email, { k: 'x'.repeat(148) })).status).toBe(200)
    const body = { metadata: { k: 'x'.repeat(149) } }
    const call = { key: rootKey(), body, outcome: '422 metadata_too_large' }
    await refused(server, updateOf(account.email), call)
  })

  it('reports how to change a user whose user_metadata leaves no space', async () => {
    const account = await register(server, 'full@example.org')
    await set(account.email, { role: 'a' })
    const own = { metadata: { k: 'x'.repeat(256 - 12 - 8) } }
    const filled = await checkedCall(server, 'PATCH /v1/auth/me/user-metadata', {
      key: account.token,
      body: own,
    })
    expect(filled.status).toBe(200)
    const refusal = await set(account.email, { role: 'none' })
    expect([refusal.status, refusal.body.detail]).toEqual([
      422,
      expect.stringContaining('"clear_user_metadata": true'),
    ])
    const body = { metadata: { role: 'none' }, clear_user_metadata: true }
    const { result, types } = await auditsOf(server, () =>
      checkedCall(server, updateOf(account.email), { body }),
    )
    expect(result.body).toEqual({ email: account.email, app_metadata: { role: 'none' } })
    expect(types).toEqual(['auth/app_metadata_updated', 'auth/user_metadata_updated'])
    const { body: me } = await checkedCall(server, 'GET /v1/auth/me', { key: account.token })
    expect([me.app_metadata, me.user_metadata]).toEqual([{ role: 'none' }, {}])
    const huge = { metadata: { k: 'x'.repeat(300) }, clear_user_metadata: true }
    const tooLarge = { key: rootKey(), body: huge, outcome: '422 metadata_too_large' }
    await refused(server, updateOf(account.email), tooLarge)
  })

  it.each([
    ['an array', '{"metadata":[]}'],
    ['__proto__ within', '{"metadata":{"a":{"__proto__":{"admin":true}}}}'],
    ['a key twice within', '{"metadata":{"role":"a","role":"b"}}'],
  ])('answers 400 for %s', async (_what, raw) => {
    await refused(server, updateOf(ada.email), { key: rootKey(), raw, outcome: '400 validation_failed' })
  })

  refusesInvalidBodies({
    server: () => server,
    route: () => updateOf(ada.email),
    body: { metadata: {} },
    key: rootKey,
  })
  acceptsAdminsOnly({
    server: () => server,
    route: () => updateOf(ada.email),
    body: { metadata: { role: 'root' } },
    user: () => ada.token,
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(userRoutes)).toEqual([])
})
