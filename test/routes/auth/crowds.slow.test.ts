import { afterAll, beforeAll, expect, it } from 'vitest'
import { register, tryLogin, usualPassword } from '../../support/auth/accounts.js'
import { checkedCall } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

it('answers 503 to a login if too many logins of one e-mail wait, and counts none of them', async () => {
  await register(server, 'crowd@example.org')
  const logins = Array.from({ length: 300 }, () => tryLogin(server, 'crowd@example.org', usualPassword))
  const answers = await Promise.all(logins)
  const others = answers.filter(({ status }) => status !== 200)
  expect(others.length).toBeGreaterThan(0)
  expect(new Set(others.map(({ body }) => body.code))).toEqual(new Set(['overloaded']))
  expect(others[0]?.headers.get('retry-after')).toBe('1')
  expect((await tryLogin(server, 'crowd@example.org', usualPassword)).status).toBe(200)
})

it('answers 503 to a registration if too many passwords wait, and completes the others', async () => {
  const emails = Array.from({ length: 400 }, (_none, at) => `crowd-${at}@example.org`)
  const answers = await Promise.all(
    emails.map((email) =>
      checkedCall(server, 'POST /v1/auth/register', { key: null, body: { email, password: usualPassword } }),
    ),
  )
  const refusedOnes = answers.filter(({ status }) => status !== 201)
  expect(new Set(refusedOnes.map(({ body }) => body.code))).toEqual(new Set(['overloaded']))
  expect(refusedOnes[0]?.headers.get('retry-after')).toBe('1')
  const { body } = await checkedCall(server, 'GET /v1/auth/users?limit=1000')
  const made = body.users.filter((user: { email: string }) => user.email.startsWith('crowd-'))
  expect(made).toHaveLength(400 - refusedOnes.length)
})

it('the server had nothing to log', () => {
  expect(server.stderr()).toBe('')
})
