import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { linkToken, logIn, outcomeOf, register, usualPassword } from '../../support/auth/accounts.js'
import { refused, restartWithFullDisk } from '../../support/auth/auth-cases.js'
import { checkedCall } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { BeforeRestart } from '../../support/server/before-restart.js'
import type { TestServer } from '../../support/server/server.js'

/* Every auth route except OAuth and passkeys, on a server whose disk counts as full. */

let server: TestServer
const before = new BeforeRestart()

beforeAll(async () => {
  server = await startAuthServer()
  await before.run()
  server = await restartWithFullDisk(server)
})
afterAll(() => server.stop())

const full = '507 storage_full'
const registered = (email: string) => before.add(() => register(server, email))
const me = (token: string) => outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: token }))
const kids = async (): Promise<string[]> => {
  const { body } = await checkedCall(server, 'GET /v1/auth/jwks', { key: null })
  return body.keys.map((key: { kid: string }) => key.kid)
}

const ada = registered('ada@example.org')

describe('a route that only reads', () => {
  it.each(['GET /v1/auth/jwks', 'GET /.well-known/jwks.json'])('shows the keys: %s', async (route) => {
    expect((await checkedCall(server, route, { key: null })).status).toBe(200)
  })

  it('shows the user, and changes nothing', async () => {
    expect(await me(ada().token)).toBe('200')
    const body = { metadata: { late: true } }
    await refused(server, 'PATCH /v1/auth/me/user-metadata', { key: ada().token, body, outcome: full })
  })
})

describe('a route that revokes access', () => {
  const leaving = registered('leaving@example.org')

  it('logs out', async () => {
    const { token } = leaving()
    expect(await outcomeOf(checkedCall(server, 'POST /v1/auth/logout', { key: token }))).toBe('200')
    expect(await me(token)).toBe('401 token_revoked')
  })

  const revoking = registered('revoking@example.org')

  it('revokes a token', async () => {
    const { token } = revoking()
    expect(await outcomeOf(checkedCall(server, 'POST /v1/auth/revoke', { key: token }))).toBe('200')
    expect(await me(token)).toBe('401 token_revoked')
  })

  const thief = before.add(() => logIn(server, ada()))

  it('ends a session', async () => {
    const sid = String(decodeJwt(thief().token)['sid'])
    const { body } = await checkedCall(server, 'GET /v1/auth/sessions', { key: ada().token })
    expect(body.sessions.map((session: { sid: string }) => session.sid)).toContain(sid)
    expect((await checkedCall(server, `DELETE /v1/auth/sessions/${sid}`, { key: ada().token })).status).toBe(
      200,
    )
    await refused(server, 'GET /v1/auth/me', { key: thief().token, outcome: '401 token_revoked' })
  })

  const deleted = registered('deleted@example.org')

  it('lists and deletes users, and changes no other', async () => {
    const { email, token } = deleted()
    const { body } = await checkedCall(server, 'GET /v1/auth/users')
    expect(body.users.map((user: { email: string }) => user.email)).toContain(email)
    const route = `PATCH /v1/auth/users/${email}/app-metadata`
    const call = { key: server.rootKey, body: { metadata: { late: true } }, outcome: full }
    await refused(server, route, call)
    expect((await checkedCall(server, `DELETE /v1/auth/users/${email}`)).status).toBe(200)
    await refused(server, 'GET /v1/auth/me', { key: token, outcome: '401 token_revoked' })
  })
})

describe('a route that writes', () => {
  const keysBefore = before.add(kids)

  it('refuses to rotate the signing key', async () => {
    await refused(server, 'POST /v1/auth/keys/rotate', { key: server.rootKey, outcome: full })
    expect(await kids()).toEqual(keysBefore())
  })

  it('refuses to register a user', async () => {
    const body = { email: 'late@example.org', password: usualPassword }
    await refused(server, 'POST /v1/auth/register', { body, outcome: full })
  })

  it('answers 507 to a login, right password or wrong', async () => {
    for (const password of [usualPassword, 'not the password of anyone']) {
      const body = { email: ada().email, password }
      await refused(server, 'POST /v1/auth/login', { body, outcome: full })
    }
  })

  const resetToken = before.add(() => linkToken(server, 'password/reset-request', ada().email))

  it('neither changes nor resets a password', async () => {
    const { token, email } = ada()
    const next = 'seven green bicycles'
    const body = { current_password: usualPassword, new_password: next }
    await refused(server, 'POST /v1/auth/password/change', { key: token, body, outcome: full })
    await refused(server, 'POST /v1/auth/password/reset-request', { body: { email }, outcome: full })
    const reset = { token: resetToken(), password: next }
    await refused(server, 'POST /v1/auth/password/reset', { body: reset, outcome: full })
  })

  const verifying = before.add(() => linkToken(server, 'verify-email/send', ada().email))

  it('neither sends nor accepts a verify link', async () => {
    const sent = { email: ada().email }
    await refused(server, 'POST /v1/auth/verify-email/send', { body: sent, outcome: full })
    await refused(server, 'POST /v1/auth/verify-email', { body: { token: verifying() }, outcome: full })
  })

  const magic = before.add(() => linkToken(server, 'magic-link/send', 'linked@example.org'))
  const refreshing = registered('refreshing@example.org')

  it('uses up neither a magic link nor a refresh token', async () => {
    const link = { key: null, body: { token: magic() } }
    const refresh = { key: null, body: { refresh_token: refreshing().refreshToken } }
    const sent = { email: 'linked@example.org' }
    await refused(server, 'POST /v1/auth/magic-link/send', { body: sent, outcome: full })
    await refused(server, 'POST /v1/auth/magic-link/verify', { ...link, outcome: full })
    await refused(server, 'POST /v1/auth/refresh', { ...refresh, outcome: full })
    await server.halt()
    server = await startAuthServer({ dataDir: server.dataDir })
    expect((await checkedCall(server, 'POST /v1/auth/magic-link/verify', link)).status).toBe(200)
    expect((await checkedCall(server, 'POST /v1/auth/refresh', refresh)).status).toBe(200)
  })
})
