import { decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keyRoutes } from '../../../src/front/routes/auth/keys.js'
import { type Account, logIn, register } from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses } from '../../support/http/answers.js'
import { auditsOf, acceptsAdminsOnly } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer
let ada: Account

beforeAll(async () => {
  server = await startAuthServer()
  ada = await register(server, 'ada@example.org')
})
afterAll(() => server.stop())

const route = 'POST /v1/auth/keys/rotate'
const kidOf = (token: string) => decodeProtectedHeader(token).kid

async function kids(): Promise<string[]> {
  const { body } = await checkedCall(server, 'GET /v1/auth/jwks', { key: null })
  return body.keys.map((key: { kid: string }) => key.kid)
}

describe('rotating the signing key', () => {
  it('signs with the key that was published as the next one, and is recorded', async () => {
    const [current, next] = await kids()
    expect(kidOf(ada.token)).toBe(current)
    const { result, types } = await auditsOf(server, () => checkedCall(server, route))
    expect(result.body).toMatchObject({ kid: next })
    expect(types).toEqual(['auth/key_rotated'])
    expect(result.body.retired_until_ms).toBeGreaterThan(Date.now() + 3_500_000)
    expect(kidOf((await logIn(server, ada)).token)).toBe(next)
    expect((await kids()).slice(0, 2)).toEqual([next, result.body.next_kid])
  })

  acceptsAdminsOnly({ server: () => server, route, user: () => ada.token })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(keyRoutes)).toEqual([])
})
