import { afterAll, beforeAll, expect, it } from 'vitest'
import { linkToken, outcomeOf, register, tryLogin, usualPassword } from '../../support/auth/accounts.js'
import { refused } from '../../support/auth/auth-cases.js'
import { eventually } from '../../support/eventually.js'
import { checkedCall } from '../../support/http/answers.js'
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

/** Resolves when a token that is issued now for a second has expired. */
function untilExpired(): Promise<void> {
  const overAtMs = Date.now() + 1_000
  return eventually(() => Date.now() >= overAtMs)
}

it('answers 401 token_expired to an expired token', async () => {
  const { token } = await register(server, 'token@example.org')
  const shown = () => outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: token }))
  await expect.poll(shown, { timeout: 30_000, interval: 100 }).toBe('401 token_expired')
})

it('answers 401 to an expired refresh token', async () => {
  const { refreshToken } = await register(server, 'refresh@example.org')
  await untilExpired()
  const call = { key: null, body: { refresh_token: refreshToken } }
  expect(await outcomeOf(checkedCall(server, 'POST /v1/auth/refresh', call))).toBe('401 refresh_expired')
})

it('answers 401 to an expired magic link', async () => {
  const token = await linkToken(server, 'magic-link/send', 'late@example.org')
  await untilExpired()
  await refused(server, 'POST /v1/auth/magic-link/verify', { body: { token }, outcome: '401 invalid_token' })
})

it('ends a lockout after its time', async () => {
  const { email } = await register(server, 'locked@example.org')
  expect((await tryLogin(server, email, 'not the password of anyone')).status).toBe(401)
  // Answered 429 or not depending on the speed of the machine; in the end the right password is accepted.
  const status = async () => (await tryLogin(server, email, usualPassword)).status
  await expect.poll(status, { timeout: 30_000, interval: 100 }).toBe(200)
})
