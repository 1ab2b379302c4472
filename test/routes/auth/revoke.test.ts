import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { revokeRoutes } from '../../../src/front/routes/auth/revoke.js'
import { type Account, outcomeOf, register } from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused, acceptsUsersOnly } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer
let ada: Account

beforeAll(async () => {
  server = await startAuthServer()
  ada = await register(server, 'ada@example.org')
})
afterAll(() => server.stop())

const route = 'POST /v1/auth/revoke'
const me = (token: string) => outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: token }))

describe('revoking a token', () => {
  it('refuses the token immediately, while its session continues, and is recorded', async () => {
    const account = await register(server, 'bob@example.org')
    const { jti, sid, sub } = decodeJwt(account.token)
    const { result, records, types } = await auditsOf(server, () =>
      checkedCall(server, route, { key: account.token }),
    )
    expect(result.body).toEqual({ revoked: true, jti })
    expect(types).toEqual(['auth/token_revoked'])
    expect(records[0]?.payload).toMatchObject({ user_id: sub, sid, outcome: 'success' })
    expect(await me(account.token)).toBe('401 token_revoked')
    const body = { refresh_token: account.refreshToken }
    const renewed = await checkedCall(server, 'POST /v1/auth/refresh', { key: null, body })
    expect(await me(renewed.body.token)).toBe('200')
    expect(await me(account.token)).toBe('401 token_revoked')
  })

  it('answers 401 the second time, and on every other route of users', async () => {
    const { token } = await register(server, 'twice@example.org')
    await checkedCall(server, route, { key: token })
    const outcome = '401 token_revoked'
    for (const other of [
      route,
      'POST /v1/auth/logout',
      'GET /v1/auth/me',
      'GET /v1/auth/sessions',
      `DELETE /v1/auth/sessions/${'0'.repeat(32)}`,
    ]) {
      await refused(server, other, { key: token, outcome })
    }
    const body = { metadata: {} }
    await refused(server, 'PATCH /v1/auth/me/user-metadata', { key: token, body, outcome })
  })

  acceptsUsersOnly({ server: () => server, route, key: () => ada.token })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(revokeRoutes)).toEqual([])
})
