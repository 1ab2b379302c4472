import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { logoutRoutes } from '../../../src/front/routes/auth/logout.js'
import { type Account, logIn, outcomeOf, register } from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused, acceptsUsersOnly } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'
import { subjectOf } from '../../support/auth/users.js'

let server: TestServer
let ada: Account

beforeAll(async () => {
  server = await startAuthServer()
  ada = await register(server, 'ada@example.org')
})
afterAll(() => server.stop())

const route = 'POST /v1/auth/logout'
const me = (token: string) => outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: token }))
const exchange = (refreshToken: string) =>
  outcomeOf(
    checkedCall(server, 'POST /v1/auth/refresh', { key: null, body: { refresh_token: refreshToken } }),
  )

/** An account with three sessions; the first was opened by registering. */
async function threeSessions(email: string) {
  const account = await register(server, email)
  return [account, await logIn(server, account), await logIn(server, account)] as const
}

describe('logging out', () => {
  it.each([
    ['', 1, [false, true, true]],
    ['?scope=local', 1, [false, true, true]],
    ['?scope=others', 2, [true, false, false]],
    ['?scope=global', 3, [false, false, false]],
  ])(
    'ends sessions and revokes their tokens immediately: query "%s", %i sessions',
    async (query, ended, stays) => {
      const sessions = await threeSessions(`scope${query.length}-${ended}@example.org`)
      const [first] = sessions
      const call = { key: first.token }
      const { result, records, types } = await auditsOf(server, () =>
        checkedCall(server, route + query, call),
      )
      expect(result.body).toEqual({ logged_out: true, sessions: ended })
      expect(types).toEqual(['auth/logout'])
      expect(records[0]?.payload).toMatchObject({ user_id: subjectOf(first.token), outcome: 'success' })
      for (const [place, { token, refreshToken }] of sessions.entries()) {
        expect(await me(token)).toBe(stays[place] ? '200' : '401 token_revoked')
        expect(await exchange(refreshToken)).toBe(stays[place] ? '200' : '401 refresh_invalid')
      }
    },
  )

  it('also revokes refreshed tokens of the session', async () => {
    const account = await register(server, 'renewed@example.org')
    const body = { refresh_token: account.refreshToken }
    const renewed = (await checkedCall(server, 'POST /v1/auth/refresh', { key: null, body })).body
    await checkedCall(server, route, { key: account.token })
    expect(await me(renewed.token)).toBe('401 token_revoked')
    expect(await exchange(renewed.refresh_token)).toBe('401 refresh_invalid')
  })

  it('does not affect other users', async () => {
    const bob = await register(server, 'bob@example.org')
    await checkedCall(server, `${route}?scope=global`, { key: bob.token })
    expect(await me(ada.token)).toBe('200')
  })

  it('answers 401 the second time', async () => {
    const account = await register(server, 'twice@example.org')
    await checkedCall(server, route, { key: account.token })
    await refused(server, route, { key: account.token, outcome: '401 token_revoked' })
  })

  it.each(['all', '', 'Local', 'local,global'])('answers 400 for the scope "%s"', async (scope) => {
    const call = { key: ada.token, outcome: '400 validation_failed' }
    const { body } = await refused(server, `${route}?scope=${scope}`, call)
    expect(body.errors).toMatchObject([{ pointer: '?scope' }])
    expect(await me(ada.token)).toBe('200')
  })

  acceptsUsersOnly({ server: () => server, route, key: () => ada.token })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(logoutRoutes)).toEqual([])
})
