import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { linkToken, logIn, outcomeOf, register, usualPassword } from '../../support/auth/accounts.js'
import { refused, restartedFull } from '../../support/auth/auth-cases.js'
import { ask } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { BeforeRestart } from '../../support/server/before-restart.js'
import type { TestServer } from '../../support/server/server.js'

/*
 * Every auth route but those of OAuth and passkeys on one server whose disk counts as full.
 */

let server: TestServer
const before = new BeforeRestart()

beforeAll(async () => {
  server = await startAuthServer()
  await before.run()
  server = await restartedFull(server)
})
afterAll(() => server.stop())

const full = '507 storage_full'
const anAccount = (email: string) => before.add(() => register(server, email))
const me = (token: string) => outcomeOf(ask(server, 'GET /v1/auth/me', { key: token }))
const kids = async (): Promise<string[]> => {
  const { body } = await ask(server, 'GET /v1/auth/jwks', { key: null })
  return body.keys.map((key: { kid: string }) => key.kid)
}

const ada = anAccount('ada@example.org')

describe('what only reads', () => {
  it.each(['GET /v1/auth/jwks', 'GET /.well-known/jwks.json'])('shows the keys: %s', async (route) => {
    expect((await ask(server, route, { key: null })).status).toBe(200)
  })

  it('shows the user, and changes nothing', async () => {
    expect(await me(ada().token)).toBe('200')
    const body = { metadata: { late: true } }
    await refused(server, 'PATCH /v1/auth/me/user-metadata', { key: ada().token, body, outcome: full })
  })
})

describe('what takes something away from a thief', () => {
  const leaving = anAccount('leaving@example.org')

  it('logs out', async () => {
    const { token } = leaving()
    expect(await outcomeOf(ask(server, 'POST /v1/auth/logout', { key: token }))).toBe('200')
    expect(await me(token)).toBe('401 token_revoked')
  })

  const revoking = anAccount('revoking@example.org')

  it('revokes a token', async () => {
    const { token } = revoking()
    expect(await outcomeOf(ask(server, 'POST /v1/auth/revoke', { key: token }))).toBe('200')
    expect(await me(token)).toBe('401 token_revoked')
  })

  const thief = before.add(() => logIn(server, ada()))

  it('ends a session', async () => {
    const sid = String(decodeJwt(thief().token)['sid'])
    const { body } = await ask(server, 'GET /v1/auth/sessions', { key: ada().token })
    expect(body.sessions.map((session: { sid: string }) => session.sid)).toContain(sid)
    expect((await ask(server, `DELETE /v1/auth/sessions/${sid}`, { key: ada().token })).status).toBe(200)
    await refused(server, 'GET /v1/auth/me', { key: thief().token, outcome: '401 token_revoked' })
  })

  const deleted = anAccount('deleted@example.org')

  it('lists and deletes users, and changes no other', async () => {
    const { email, token } = deleted()
    const { body } = await ask(server, 'GET /v1/auth/users')
    expect(body.users.map((user: { email: string }) => user.email)).toContain(email)
    const route = `PATCH /v1/auth/users/${email}/app-metadata`
    const call = { key: server.rootKey, body: { metadata: { late: true } }, outcome: full }
    await refused(server, route, call)
    expect((await ask(server, `DELETE /v1/auth/users/${email}`)).status).toBe(200)
    await refused(server, 'GET /v1/auth/me', { key: token, outcome: '401 token_revoked' })
  })
})

describe('what writes', () => {
  const keysBefore = before.add(kids)

  it('rotates no signing key', async () => {
    await refused(server, 'POST /v1/auth/keys/rotate', { key: server.rootKey, outcome: full })
    expect(await kids()).toEqual(keysBefore())
  })

  it('registers no user', async () => {
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

  it('neither sends a link that verifies nor takes one', async () => {
    const sent = { email: ada().email }
    await refused(server, 'POST /v1/auth/verify-email/send', { body: sent, outcome: full })
    await refused(server, 'POST /v1/auth/verify-email', { body: { token: verifying() }, outcome: full })
  })

  const magic = before.add(() => linkToken(server, 'magic-link/send', 'linked@example.org'))
  const refreshing = anAccount('refreshing@example.org')

  it('uses neither a magic link nor a refresh token up', async () => {
    const link = { key: null, body: { token: magic() } }
    const refresh = { key: null, body: { refresh_token: refreshing().refreshToken } }
    const sent = { email: 'linked@example.org' }
    await refused(server, 'POST /v1/auth/magic-link/send', { body: sent, outcome: full })
    await refused(server, 'POST /v1/auth/magic-link/verify', { ...link, outcome: full })
    await refused(server, 'POST /v1/auth/refresh', { ...refresh, outcome: full })
    await server.halt()
    server = await startAuthServer({ dataDir: server.dataDir })
    expect((await ask(server, 'POST /v1/auth/magic-link/verify', link)).status).toBe(200)
    expect((await ask(server, 'POST /v1/auth/refresh', refresh)).status).toBe(200)
  })
})
