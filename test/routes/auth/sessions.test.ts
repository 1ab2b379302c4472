import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sessionRoutes } from '../../../src/front/routes/auth/sessions.js'
import { type Account, linkToken, logIn, outcomeOf, register } from '../../support/auth/accounts.js'
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

const list = 'GET /v1/auth/sessions'
const sidOf = (token: string) => String(decodeJwt(token)['sid'])
const endOf = (sid: string) => `DELETE /v1/auth/sessions/${sid}`

interface Shown {
  sid: string
  created_at_ms: number
  last_used_at_ms: number
  amr: string[]
  current: boolean
}

const shown = async (token: string): Promise<Shown[]> =>
  (await checkedCall(server, list, { key: token })).body.sessions

describe('listing sessions', () => {
  it('shows how and when each was opened, and which one is that of the caller', async () => {
    const account = await register(server, 'bob@example.org')
    const second = await logIn(server, account)
    const link = await linkToken(server, 'magic-link/send', account.email)
    const call = { key: null, body: { token: link } }
    const third = (await checkedCall(server, 'POST /v1/auth/magic-link/verify', call)).body
    const sessions = await shown(second.token)
    const tokens = [account.token, second.token, third.token]
    expect(sessions.map(({ sid }) => sid).toSorted()).toEqual(tokens.map(sidOf).toSorted())
    expect(sessions.filter(({ current }) => current).map(({ sid }) => sid)).toEqual([sidOf(second.token)])
    expect(sessions.find(({ sid }) => sid === sidOf(third.token))?.amr).toEqual(['otp'])
    const times = sessions.map((session) => session.created_at_ms)
    expect(times).toEqual(times.toSorted((left, right) => right - left))
  })

  it('shows when a session was last used', async () => {
    const account = await register(server, 'used@example.org')
    const [before] = await shown(account.token)
    const body = { refresh_token: account.refreshToken }
    await checkedCall(server, 'POST /v1/auth/refresh', { key: null, body })
    const [after] = await shown(account.token)
    expect(after?.created_at_ms).toBe(before?.created_at_ms)
    expect(after?.last_used_at_ms).toBeGreaterThanOrEqual(before?.last_used_at_ms ?? Infinity)
  })

  it('does not show sessions of other users', async () => {
    const eve = await register(server, 'eve@example.org')
    expect((await shown(eve.token)).map(({ sid }) => sid)).toEqual([sidOf(eve.token)])
  })

  acceptsUsersOnly({ server: () => server, route: list, key: () => ada.token })
})

describe('ending a session', () => {
  it('refuses its tokens immediately, keeps other sessions, and is recorded', async () => {
    const account = await register(server, 'many@example.org')
    const other = await logIn(server, account)
    const sid = sidOf(other.token)
    const { result, types } = await auditsOf(server, () =>
      checkedCall(server, endOf(sid), { key: account.token }),
    )
    expect(result.body).toEqual({ ended: true, sid })
    expect(types).toEqual(['auth/logout'])
    await refused(server, 'GET /v1/auth/me', { key: other.token, outcome: '401 token_revoked' })
    const body = { refresh_token: other.refreshToken }
    await refused(server, 'POST /v1/auth/refresh', { body, outcome: '401 refresh_invalid' })
    expect((await shown(account.token)).map((session) => session.sid)).toEqual([sidOf(account.token)])
  })

  it('is possible for the session of the caller', async () => {
    const { token } = await register(server, 'self@example.org')
    expect((await checkedCall(server, endOf(sidOf(token)), { key: token })).status).toBe(200)
    await refused(server, list, { key: token, outcome: '401 token_revoked' })
  })

  it('answers 404 for the session of another user, and does not end it', async () => {
    const mallory = await register(server, 'mallory@example.org')
    const outcome = '404 not_found'
    await refused(server, endOf(sidOf(ada.token)), { key: mallory.token, outcome })
    expect(await outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: ada.token }))).toBe('200')
  })

  it('answers 404 for an ended or unknown session', async () => {
    const account = await register(server, 'ended@example.org')
    const sid = sidOf((await logIn(server, account)).token)
    await checkedCall(server, endOf(sid), { key: account.token })
    for (const none of [sid, '0'.repeat(32), 'x', '%00', sid.toUpperCase(), 'f'.repeat(3_000)]) {
      await refused(server, endOf(none), { key: account.token, outcome: '404 not_found' })
    }
  })

  acceptsUsersOnly({ server: () => server, route: () => endOf(sidOf(ada.token)), key: () => ada.token })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(sessionRoutes)).toEqual([])
})
