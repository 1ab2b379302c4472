// @run by two fronts
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { linkToken, outcomeOf, register, tally, tryLogin } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import type { TestAnswer, TestServer } from '../support/server/server.js'

/*
 * Single-use tokens work once, even when they are used many times simultaneously
 * (docs/adr/0010-auth-state.md).
 */

const USES = 100
/** Fewer, because each hashes a password. */
const HASHED_USES = 25

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '4' } })
})
afterAll(() => server.stop())

/** Sends the same request many times simultaneously. */
function sendSimultaneously(path: string, body: unknown, uses = USES): Promise<TestAnswer[]> {
  return Promise.all(
    Array.from({ length: uses }, () => checkedCall(server, `POST ${path}`, { key: null, body })),
  )
}

const outcomes = async (answers: readonly TestAnswer[]) =>
  tally(await Promise.all(answers.map((answer) => outcomeOf(Promise.resolve(answer)))))

/** The number of audit records of a type. */
async function audited(type: string): Promise<number> {
  const body = { type: 'latest', types: [type], limit: 1_000 }
  const { body: page } = await checkedCall(server, 'POST /v1/agents/default/query', { body })
  return page.records.length
}

describe('simultaneous uses', () => {
  it.each(['new-mailbox@example.org', 'known-mailbox@example.org'])(
    'sign in once with one magic link: %s',
    async (email) => {
      if (email.startsWith('known')) await register(server, email)
      const token = await linkToken(server, 'magic-link/send', email)
      const before = await audited('auth/magic_link_login')
      const answers = await sendSimultaneously('/v1/auth/magic-link/verify', { token })
      expect(await outcomes(answers)).toEqual({ '200': 1, '401 invalid_token': USES - 1 })
      expect(await audited('auth/magic_link_login')).toBe(before + 1)
      const users = await checkedCall(server, 'GET /v1/auth/users?limit=1000')
      const found = users.body.users.filter((user: { email: string }) => user.email === email)
      expect(found).toHaveLength(1)
      const [won] = answers.filter(({ status }) => status === 200)
      const sessions = await checkedCall(server, 'GET /v1/auth/sessions', { key: won?.body.token })
      expect(sessions.body.sessions).toHaveLength(email.startsWith('known') ? 2 : 1)
    },
  )

  it('verify the e-mail once with one token', async () => {
    const { email } = await register(server, 'verify@example.org')
    const token = await linkToken(server, 'verify-email/send', email)
    const answers = await sendSimultaneously('/v1/auth/verify-email', { token })
    expect(await outcomes(answers)).toEqual({ '200': 1, '400 invalid_token': USES - 1 })
    expect(await audited('auth/email_verified')).toBe(1)
  })

  it('set one password with one reset token', async () => {
    const { email } = await register(server, 'reset@example.org')
    const token = await linkToken(server, 'password/reset-request', email)
    const passwords = Array.from({ length: HASHED_USES }, (_none, n) => `another password, number ${n}`)
    const answers = await Promise.all(
      passwords.map((password) =>
        checkedCall(server, 'POST /v1/auth/password/reset', { key: null, body: { token, password } }),
      ),
    )
    expect(await outcomes(answers)).toEqual({ '200': 1, '400 invalid_token': HASHED_USES - 1 })
    const won = answers.findIndex(({ status }) => status === 200)
    expect(await outcomeOf(tryLogin(server, email, passwords[won] ?? ''))).toBe('200')
    const lost = passwords[(won + 1) % HASHED_USES] ?? ''
    expect(await outcomeOf(tryLogin(server, email, lost))).toBe('401 invalid_credentials')
  })

  it('return the same successor of one refresh token', async () => {
    const { refreshToken, token } = await register(server, 'refresh@example.org')
    const answers = await sendSimultaneously('/v1/auth/refresh', { refresh_token: refreshToken })
    expect(await outcomes(answers)).toEqual({ '200': USES })
    const [next = '', ...more] = new Set(answers.map(({ body }) => body.refresh_token))
    expect(more).toEqual([])
    expect(next).not.toBe(refreshToken)
    const sessions = await checkedCall(server, 'GET /v1/auth/sessions', { key: token })
    expect(sessions.body.sessions).toHaveLength(1)
    // The successor is valid and can be refreshed, too.
    const after = await checkedCall(server, 'POST /v1/auth/refresh', {
      key: null,
      body: { refresh_token: next },
    })
    expect(after.status).toBe(200)
    expect([refreshToken, next]).not.toContain(after.body.refresh_token)
  })

  it('open one stream with one ticket, even for different agents', async () => {
    const { body } = await checkedCall(server, 'POST /v1/stream/tickets')
    const opened = await Promise.all(
      Array.from({ length: USES }, async (_none, n) => {
        const abort = new AbortController()
        const { status } = await fetch(`${server.url}/v1/stream?agents=a${n}&ticket=${body.ticket}`, {
          signal: abort.signal,
        })
        abort.abort()
        return String(status)
      }),
    )
    expect(tally(opened)).toEqual({ '200': 1, '401': USES - 1 })
  })

  it('register one account for one e-mail', async () => {
    const answers = await sendSimultaneously(
      '/v1/auth/register',
      { email: 'Once@Example.org', password: 'twelve tall storks asleep' },
      HASHED_USES,
    )
    expect(await outcomes(answers)).toEqual({ '201': 1, '409 email_exists': HASHED_USES - 1 })
  })
})

it('the server logs no warning or error', () => {
  expect(server.stderr()).toBe('')
})
