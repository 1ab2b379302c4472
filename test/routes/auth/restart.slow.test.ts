import { decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { logIn, outcomeOf, register } from '../../support/auth/accounts.js'
import { checkedCall } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { BeforeRestart } from '../../support/server/before-restart.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer
const before = new BeforeRestart()

beforeAll(async () => {
  server = await startAuthServer()
  await before.run()
  await server.halt()
  server = await startAuthServer({ dataDir: server.dataDir })
})
afterAll(() => server.stop())

const me = (token: string) => outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: token }))
const exchange = (refreshToken: string) =>
  checkedCall(server, 'POST /v1/auth/refresh', { key: null, body: { refresh_token: refreshToken } })
const kidOf = (token: string) => decodeProtectedHeader(token).kid
const kids = async (of: TestServer): Promise<string[]> => {
  const { body } = await checkedCall(of, 'GET /v1/auth/jwks', { key: null })
  return body.keys.map((key: { kid: string }) => key.kid)
}
const ada = before.add(() => register(server, 'ada@example.org'))

async function takesAll(tokens: readonly string[]): Promise<void> {
  for (const token of tokens) {
    expect(await me(token)).toBe('200')
    expect(await kids(server)).toContain(kidOf(token))
  }
}

const ofEachKey = before.add(async () => {
  const tokens = [ada().token]
  for (let rotation = 0; rotation < 2; rotation++) {
    await checkedCall(server, 'POST /v1/auth/keys/rotate')
    tokens.push((await logIn(server, ada())).token)
  }
  expect(new Set(tokens.map(kidOf)).size).toBe(3)
  await takesAll(tokens)
  return tokens
})

it('accepts tokens of earlier keys after a rotation, and publishes these keys', async () => {
  await takesAll(ofEachKey())
  expect(kidOf((await logIn(server, ada())).token)).toBe((await kids(server))[0])
})

const keysBefore = before.add(() => kids(server))

it('publishes the same keys as before, and different ones on another server', async () => {
  expect(await kids(server)).toEqual(keysBefore())
  const other = await startAuthServer()
  try {
    expect((await kids(other)).filter((kid) => keysBefore().includes(kid))).toEqual([])
  } finally {
    await other.stop()
  }
})

const leaving = before.add(async () => {
  const account = await register(server, 'leaving@example.org')
  await checkedCall(server, 'POST /v1/auth/logout', { key: account.token })
  return account
})

it('remembers a logout', async () => {
  expect(await me(leaving().token)).toBe('401 token_revoked')
  expect(await outcomeOf(exchange(leaving().refreshToken))).toBe('401 refresh_invalid')
})

const revoked = before.add(async () => {
  const { token } = await register(server, 'revoked@example.org')
  await checkedCall(server, 'POST /v1/auth/revoke', { key: token })
  return token
})

it('remembers a revoked token', async () => {
  expect(await me(revoked())).toBe('401 token_revoked')
  expect(await me(ada().token)).toBe('200')
})

const refreshed = before.add(async () => {
  const { refreshToken } = await register(server, 'refreshed@example.org')
  const { body } = await exchange(refreshToken)
  return String(body.refresh_token)
})

it('accepts a refresh token', async () => {
  expect((await exchange(refreshed())).status).toBe(200)
})

it('the server had nothing to log', () => {
  expect(server.stderr()).toBe('')
})
