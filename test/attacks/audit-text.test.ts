import { afterAll, beforeAll, expect, it } from 'vitest'
import { register, tryLogin, usualPassword } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { auditsOf } from '../support/auth/auth-cases.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * A strand is permanent and is exported, so no e-mail, password or token from the headers of a client may be
 * written to it.
 */

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

const email = 'victim@example.com'

it('does not write e-mails or tokens from headers to the audit strand', async () => {
  const { token, refreshToken } = await register(server, 'ada@example.org')
  const ids = [email, encodeURIComponent(email), `<${email}>`, token.slice(0, 100), refreshToken]
  const agents = [
    email,
    `Mozilla/5.0 (X11; mailto:${email}) Firefox/1`,
    `bot/1.0 (+${encodeURIComponent(email)})`,
    `client/1 "${email}",${email};${email}`,
    `Bearer ${token}`,
    `refresh_token=${refreshToken}`,
  ]
  const { records } = await auditsOf(server, async () => {
    for (const id of ids)
      await call(server, 'POST /v1/auth/login', {
        key: null,
        body: { email: 'ada@example.org', password: usualPassword },
        headers: { 'x-request-id': id },
      })
    for (const agent of agents)
      await call(server, 'POST /v1/auth/login', {
        key: null,
        body: { email: 'ada@example.org', password: usualPassword },
        headers: { 'user-agent': agent },
      })
  })
  expect(records).toHaveLength(ids.length + agents.length)
  const exported = await checkedCall(server, 'GET /v1/strand/export')
  for (const secret of ['victim', 'example.com', token.slice(0, 100), refreshToken]) {
    expect(exported.text).not.toContain(secret)
  }
  expect(records.some(({ payload }) => String(payload['user_agent']).startsWith('Mozilla/5.0 ('))).toBe(true)
})

it('audits a request with an id of the server, which is also in the answer if the client sent no id', async () => {
  const login = (headers: Record<string, string>) =>
    auditsOf(server, () =>
      checkedCall(server, 'POST /v1/auth/login', {
        key: null,
        body: { email: 'ada@example.org', password: usualPassword },
        headers,
      }),
    )
  const sent = await login({ 'x-request-id': 'mine-1' })
  expect(sent.result.headers.get('x-request-id')).toBe('mine-1')
  const generated = await login({})
  expect(generated.records[0]?.payload['request_id']).toBe(generated.result.headers.get('x-request-id'))
  const [first, second] = [sent, generated].map(({ records }) => String(records[0]?.payload['request_id']))
  expect(first).not.toBe('mine-1')
  expect(first?.split('-').slice(0, -1)).toEqual(second?.split('-').slice(0, -1))
})

it('does not echo or log an id that could be an e-mail', async () => {
  for (const id of [email, encodeURIComponent(email)]) {
    const { headers } = await tryLoginWith(id)
    expect(headers.get('x-request-id')).not.toContain('victim')
  }
  expect(server.stderr()).not.toContain('victim')
})

const tryLoginWith = (id: string) =>
  call(server, 'POST /v1/auth/login', { key: null, raw: '{', headers: { 'x-request-id': id } })

it('audits a failed login with only the HMAC of its e-mail', async () => {
  const { records, types } = await auditsOf(server, () => tryLogin(server, 'ada@example.org', 'wrong'))
  expect(types).toEqual(['auth/login_failed'])
  expect(records[0]?.payload['email_hmac']).toMatch(/^[0-9a-f]{64}$/)
})
