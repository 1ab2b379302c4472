import { afterAll, beforeAll, expect, it } from 'vitest'
import { linkToken, outcomeOf, register, tryLogin, usualPassword } from '../../support/auth/accounts.js'
import { refused } from '../../support/auth/auth-cases.js'
import { eventually } from '../../support/eventually.js'
import { ask } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({
    env: {
      SERVICE_AUTH_JWT_EXPIRY_SECS: '1',
      SERVICE_AUTH_REFRESH_TOKEN_EXPIRY_SECS: '1',
      SERVICE_AUTH_MAGIC_LINK_EXPIRY_SECS: '1',
      SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: '1',
      SERVICE_AUTH_LOCKOUT_DURATION_SECS: '1',
    },
  })
})
afterAll(() => server.stop())

/** Resolves when what is made now and lives a second has ended. */
function overASecond(): Promise<void> {
  const overAtMs = Date.now() + 1_000
  return eventually(() => Date.now() >= overAtMs)
}

it('a token is answered 401 token_expired once its time is over', async () => {
  const { token } = await register(server, 'token@example.org')
  const shown = () => outcomeOf(ask(server, 'GET /v1/auth/me', { key: token }))
  await expect.poll(shown, { timeout: 30_000, interval: 100 }).toBe('401 token_expired')
})

it('a refresh token is answered 401 once its time is over', async () => {
  const { refreshToken } = await register(server, 'refresh@example.org')
  await overASecond()
  const call = { key: null, body: { refresh_token: refreshToken } }
  expect(await outcomeOf(ask(server, 'POST /v1/auth/refresh', call))).toBe('401 refresh_expired')
})

it('a magic link is answered 401 once its time is over', async () => {
  const token = await linkToken(server, 'magic-link/send', 'late@example.org')
  await overASecond()
  await refused(server, 'POST /v1/auth/magic-link/verify', { body: { token }, outcome: '401 invalid_token' })
})

it('a lockout ends by itself', async () => {
  const { email } = await register(server, 'locked@example.org')
  expect((await tryLogin(server, email, 'not the password of anyone')).status).toBe(401)
  // Answered 429 or not by how fast the machine is; in the end the right password is taken.
  const status = async () => (await tryLogin(server, email, usualPassword)).status
  await expect.poll(status, { timeout: 30_000, interval: 100 }).toBe(200)
})
