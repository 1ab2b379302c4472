import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { meRoutes } from '../../../src/front/routes/auth/me.js'
import { type Account, logIn, register } from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused, refusesInvalidBodies, acceptsUsersOnly } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer
let ada: Account

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_AUTH_METADATA_MAX_BYTES: '256' } })
  ada = await register(server, 'ada@example.org')
})
afterAll(() => server.stop())

const show = 'GET /v1/auth/me'
const update = 'PATCH /v1/auth/me/user-metadata'
const set = (token: string, metadata: unknown) =>
  checkedCall(server, update, { key: token, body: { metadata } })

describe('showing the signed-in user', () => {
  it('returns the stored user, which may be newer than the token', async () => {
    const bob = await register(server, 'bob@example.org')
    await set(bob.token, { theme: 'dark' })
    await checkedCall(server, `PATCH /v1/auth/users/${bob.email}/app-metadata`, {
      body: { metadata: { role: 'x' } },
    })
    const { status, body } = await checkedCall(server, show, { key: bob.token })
    expect([status, body]).toMatchObject([
      200,
      {
        user_id: bob.userId,
        email: bob.email,
        verified: false,
        app_metadata: { role: 'x' },
        user_metadata: { theme: 'dark' },
      },
    ])
    expect(body.last_login_at_ms).toBeGreaterThanOrEqual(body.created_at_ms)
    expect(decodeJwt(bob.token)).toMatchObject({ app_metadata: {}, user_metadata: {} })
  })

  it('returns to each user only its own data, without a password', async () => {
    const bodies = []
    for (const email of ['one@example.org', 'two@example.org']) {
      const { token } = await register(server, email)
      bodies.push((await checkedCall(server, show, { key: token })).body)
    }
    expect(bodies.map(({ email }) => email)).toEqual(['one@example.org', 'two@example.org'])
    expect(JSON.stringify(bodies)).not.toMatch(/password|argon2/i)
  })

  it('answers 401 to the token of a deleted user, also if the e-mail has a new account', async () => {
    const deleted = await register(server, 'gone@example.org')
    await checkedCall(server, `DELETE /v1/auth/users/${deleted.email}`)
    await refused(server, show, { key: deleted.token, outcome: '401 token_revoked' })
    const again = await register(server, deleted.email)
    expect(again.userId).not.toBe(deleted.userId)
    await refused(server, show, { key: deleted.token, outcome: '401 token_revoked' })
    expect((await checkedCall(server, show, { key: again.token })).body.user_id).toBe(again.userId)
  })

  acceptsUsersOnly({ server: () => server, route: show, key: () => ada.token })
})

describe('replacing user_metadata', () => {
  it('replaces the whole object, is recorded without it, and is in later tokens', async () => {
    const account = await register(server, 'eve@example.org')
    await set(account.token, { theme: 'dark', secretive: 'first value' })
    const metadata = { name: 'Éve', nested: { list: [1, 2.5, null, true], empty: {} } }
    const { result, records, types } = await auditsOf(server, () => set(account.token, metadata))
    expect(result.body).toEqual({ email: account.email, user_metadata: metadata })
    expect(types).toEqual(['auth/user_metadata_updated'])
    expect(JSON.stringify(records)).not.toContain('Éve')
    expect(decodeJwt((await logIn(server, account)).token)['user_metadata']).toEqual(metadata)
    expect((await set(account.token, {})).body.user_metadata).toEqual({})
  })

  it('does not change app_metadata', async () => {
    const account = await register(server, 'apart@example.org')
    const route = `PATCH /v1/auth/users/${account.email}/app-metadata`
    await checkedCall(server, route, { body: { metadata: { role: 'reader' } } })
    await set(account.token, { role: 'root', app_metadata: { role: 'root' } })
    const { body } = await checkedCall(server, show, { key: account.token })
    expect(body.app_metadata).toEqual({ role: 'reader' })
  })

  it('accepts as many bytes as both objects may have together, and answers 422 for one more', async () => {
    const account = await register(server, 'bytes@example.org')
    const route = `PATCH /v1/auth/users/${account.email}/app-metadata`
    // {"k":"…"} adds 8 bytes to the text.
    await checkedCall(server, route, { body: { metadata: { k: 'x'.repeat(92) } } })
    expect((await set(account.token, { k: 'é'.repeat(74) })).status).toBe(200)
    const body = { metadata: { k: `${'é'.repeat(74)}x` } }
    await refused(server, update, { key: account.token, body, outcome: '422 metadata_too_large' })
    const shown = (await checkedCall(server, show, { key: account.token })).body
    expect(shown.user_metadata).toEqual({ k: 'é'.repeat(74) })
  })

  it.each([
    ['an array', '{"metadata":[]}'],
    ['a text', '{"metadata":"x"}'],
    ['__proto__ within', '{"metadata":{"a":{"__proto__":{"admin":true}}}}'],
    ['__proto__ spelled by an escape', '{"metadata":{"\\u005f_proto__":1}}'],
    ['a key twice within', '{"metadata":{"a":1,"a":2}}'],
    ['an invalid number', '{"metadata":{"a":1e400}}'],
    ['a lone surrogate', '{"metadata":{"a":"\\udc00"}}'],
    ['too much nesting', `{"metadata":{"a":${'['.repeat(40)}${']'.repeat(40)}}}`],
  ])('answers 400 for %s', async (_what, raw) => {
    await refused(server, update, { key: ada.token, raw, outcome: '400 validation_failed' })
  })

  refusesInvalidBodies({
    server: () => server,
    route: update,
    body: { metadata: {} },
    key: () => ada.token,
  })
  acceptsUsersOnly({ server: () => server, route: update, body: { metadata: {} }, key: () => ada.token })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(meRoutes)).toEqual([])
})
