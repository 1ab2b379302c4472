import { afterAll, beforeAll, expect, it } from 'vitest'
import { register, tryLogin, usualPassword } from '../support/auth/accounts.js'
import { ask } from '../support/http/answers.js'
import { auditsOf } from '../support/auth/auth-cases.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * What is on a strand stays there and is exported. No e-mail, password or token gets onto one by what callers say of
 * themselves in headers.
 */

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

const email = 'victim@example.com'

it('puts no e-mail and no token onto the audit strand by headers', async () => {
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
  const exported = await ask(server, 'GET /v1/strand/export')
  for (const secret of ['victim', 'example.com', token.slice(0, 100), refreshToken]) {
    expect(exported.text).not.toContain(secret)
  }
  expect(records.some(({ payload }) => String(payload['user_agent']).startsWith('Mozilla/5.0 ('))).toBe(true)
})

it('names a request by an id of the server’s own, which is that of the answer where none was sent', async () => {
  const login = (headers: Record<string, string>) =>
    auditsOf(server, () =>
      ask(server, 'POST /v1/auth/login', {
        key: null,
        body: { email: 'ada@example.org', password: usualPassword },
        headers,
      }),
    )
  const sent = await login({ 'x-request-id': 'mine-1' })
  expect(sent.result.headers.get('x-request-id')).toBe('mine-1')
  const made = await login({})
  expect(made.records[0]?.payload['request_id']).toBe(made.result.headers.get('x-request-id'))
  const [first, second] = [sent, made].map(({ records }) => String(records[0]?.payload['request_id']))
  expect(first).not.toBe('mine-1')
  expect(first?.split('-').slice(0, -1)).toEqual(second?.split('-').slice(0, -1))
})

it('echoes no id that could be an e-mail, as it would stand in the log', async () => {
  for (const id of [email, encodeURIComponent(email)]) {
    const { headers } = await tryLoginWith(id)
    expect(headers.get('x-request-id')).not.toContain('victim')
  }
  expect(server.stderr()).not.toContain('victim')
})

const tryLoginWith = (id: string) =>
  call(server, 'POST /v1/auth/login', { key: null, raw: '{', headers: { 'x-request-id': id } })

it('records a failed login with only the HMAC of its e-mail', async () => {
  const { records, types } = await auditsOf(server, () => tryLogin(server, 'ada@example.org', 'wrong'))
  expect(types).toEqual(['auth/login_failed'])
  expect(records[0]?.payload['email_hmac']).toMatch(/^[0-9a-f]{64}$/)
})
