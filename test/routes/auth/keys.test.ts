import { decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keyRoutes } from '../../../src/routes/auth/keys.js'
import { type Account, logIn, outcomeOf, register } from '../../support/auth/accounts.js'
import { ask, unseenSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused, restartedFull, takesAdminsOnly } from '../../support/auth/auth-cases.js'
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
  const { body } = await ask(server, 'GET /v1/auth/jwks', { key: null })
  return body.keys.map((key: { kid: string }) => key.kid)
}

describe('rotating the signing key', () => {
  it('signs by the key that was published as the next, and is written down', async () => {
    const [current, next] = await kids()
    expect(kidOf(ada.token)).toBe(current)
    const { result, types } = await auditsOf(server, () => ask(server, route))
    expect(result.body).toMatchObject({ kid: next })
    expect(types).toEqual(['auth/key_rotated'])
    expect(result.body.retired_until_ms).toBeGreaterThan(Date.now() + 3_500_000)
    expect(kidOf((await logIn(server, ada)).token)).toBe(next)
    expect((await kids()).slice(0, 2)).toEqual([next, result.body.next_kid])
  })

  it('goes on taking tokens of the keys before, which stay published, also after a restart', async () => {
    const tokens = [ada.token, (await logIn(server, ada)).token]
    await ask(server, route)
    tokens.push((await logIn(server, ada)).token)
    expect(new Set(tokens.map(kidOf)).size).toBe(3)
    const check = async () => {
      for (const token of tokens) {
        expect(await outcomeOf(ask(server, 'GET /v1/auth/me', { key: token }))).toBe('200')
        expect(await kids()).toContain(kidOf(token))
      }
    }
    await check()
    await server.halt()
    server = await startAuthServer({ dataDir: server.dataDir })
    await check()
    expect(kidOf((await logIn(server, ada)).token)).toBe((await kids())[0])
  })

  takesAdminsOnly({ server: () => server, route, user: () => ada.token })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(unseenSuccesses(keyRoutes)).toEqual([])
})

it('answers 507 while the disk is full', async () => {
  const before = await kids()
  server = await restartedFull(server)
  await refused(server, route, { key: server.rootKey, outcome: '507 storage_full' })
  expect(await kids()).toEqual(before)
})
