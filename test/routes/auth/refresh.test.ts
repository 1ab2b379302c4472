import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { refreshRoutes } from '../../../src/front/routes/auth/refresh.js'
import { logIn, outcomeOf, register } from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused, refusesInvalidBodies } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

const route = 'POST /v1/auth/refresh'
const exchange = (refreshToken: string) =>
  checkedCall(server, route, { key: null, body: { refresh_token: refreshToken } })

/** Exchanges a token `times` times. @returns all refresh tokens, including the first */
async function rotate(first: string, times: number): Promise<string[]> {
  const all = [first]
  for (let time = 0; time < times; time++) {
    all.push((await exchange(all.at(-1) ?? '')).body.refresh_token)
  }
  return all
}

describe('exchanging a refresh token', () => {
  it('returns another refresh token and a new token of the same session, and appends nothing', async () => {
    const account = await register(server, 'ada@example.org')
    const { result, types } = await auditsOf(server, () => exchange(account.refreshToken))
    expect([result.status, types]).toEqual([200, []])
    expect(result.headers.get('cache-control')).toBe('no-store')
    expect(result.body).toMatchObject({ token_type: 'Bearer', expires_in: 3_600 })
    expect(result.body.refresh_token).not.toBe(account.refreshToken)
    const [before, after] = [decodeJwt(account.token), decodeJwt(result.body.token)]
    expect(after).toMatchObject({ sub: before.sub, sid: before['sid'], amr: before['amr'] })
    expect(after.jti).not.toBe(before.jti)
    expect((await checkedCall(server, 'GET /v1/auth/me', { key: result.body.token })).status).toBe(200)
    expect((await checkedCall(server, 'GET /v1/auth/me', { key: account.token })).status).toBe(200)
  })

  it('puts the current metadata into the new token', async () => {
    const account = await register(server, 'meta@example.org')
    const body = { metadata: { role: 'editor' } }
    await checkedCall(server, `PATCH /v1/auth/users/${account.email}/app-metadata`, { body })
    const { body: tokens } = await exchange(account.refreshToken)
    expect(decodeJwt(account.token)['app_metadata']).toEqual({})
    expect(decodeJwt(tokens.token)['app_metadata']).toEqual({ role: 'editor' })
  })

  it('returns the current successor to each earlier token for a short time', async () => {
    const { refreshToken } = await register(server, 'late-tabs@example.org')
    const all = await rotate(refreshToken, 3)
    const answers = await Promise.all(all.slice(0, -1).map(exchange))
    expect(answers.map(({ body }) => body.refresh_token)).toEqual(Array(3).fill(all.at(-1)))
  })

  it('returns the same successor to the previous token for a short time', async () => {
    const { refreshToken } = await register(server, 'tabs@example.org')
    const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(refreshToken)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
  })

  it('ends the session if an older token is used', async () => {
    const account = await register(server, 'stolen@example.org')
    const other = await logIn(server, account)
    const all = await rotate(account.refreshToken, limits.refreshRepeatsMax + 1)
    const { result, records, types } = await auditsOf(server, () => exchange(account.refreshToken))
    expect([result.status, result.body.code]).toEqual([401, 'refresh_reused'])
    expect(types).toEqual(['auth/refresh_reused'])
    expect(records[0]?.payload).toMatchObject({ user_id: account.userId, outcome: 'failure' })
    for (const token of all) {
      const body = { refresh_token: token }
      await refused(server, route, { body, outcome: '401 refresh_invalid' })
    }
    expect(await outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: account.token }))).toBe(
      '401 token_revoked',
    )
    expect((await exchange(other.refreshToken)).status).toBe(200)
  })

  it('answers 401 to a token that was issued elsewhere or modified', async () => {
    const { refreshToken, token } = await register(server, 'forged@example.org')
    const bytes = Buffer.from(refreshToken, 'base64url')
    const flipped = Array.from({ length: bytes.length }, (_none, at) => {
      const copy = Buffer.from(bytes)
      copy[at] = (copy[at] ?? 0) ^ 1
      return copy.toString('base64url')
    })
    const others = ['', 'x', `${refreshToken}=`, ` ${refreshToken}`, token, 'A'.repeat(70), ...flipped]
    for (const other of others) {
      await refused(server, route, { body: { refresh_token: other }, outcome: '401 refresh_invalid' })
    }
    expect((await exchange(refreshToken)).status).toBe(200)
  })

  it('answers 401 after a logout', async () => {
    const account = await register(server, 'out@example.org')
    await checkedCall(server, 'POST /v1/auth/logout', { key: account.token })
    const body = { refresh_token: account.refreshToken }
    await refused(server, route, { body, outcome: '401 refresh_invalid' })
  })

  refusesInvalidBodies({ server: () => server, route, body: { refresh_token: 'A'.repeat(70) } })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(refreshRoutes)).toEqual([])
})
