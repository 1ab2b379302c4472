import { calculateJwkThumbprint, createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jwksRoutes } from '../../../src/front/routes/auth/jwks.js'
import { register } from '../../support/auth/accounts.js'
import { ask, leavesUnchanged, unseenSuccesses } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

const routes = ['GET /v1/auth/jwks', 'GET /.well-known/jwks.json']

describe.each(routes)('%s', (route) => {
  it('shows the public key in force and the next one, to anyone', async () => {
    const answer = await leavesUnchanged(server, 'default', () => ask(server, route, { key: null }))
    expect(answer.headers.get('cache-control')).toBe('public, max-age=300')
    const { keys } = answer.body
    expect(keys).toHaveLength(2)
    for (const key of keys) {
      expect(Object.keys(key).toSorted()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x'])
      expect(key.kid).toBe(await calculateJwkThumbprint(key))
    }
    expect(keys[0].kid).not.toBe(keys[1].kid)
  })

  it('verifies a token that was issued here', async () => {
    const { token } = await register(server, `${routes.indexOf(route)}@example.org`)
    const { body } = await ask(server, route, { key: null })
    const { payload } = await jwtVerify(token, createLocalJWKSet(body), { algorithms: ['EdDSA'] })
    expect(payload['email']).toBe(`${routes.indexOf(route)}@example.org`)
    expect(decodeProtectedHeader(token).kid).toBe(body.keys[0].kid)
  })

  it('takes no notice of a credential that is no good', async () => {
    expect((await ask(server, route, { key: 'nonsense' })).status).toBe(200)
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(unseenSuccesses(jwksRoutes)).toEqual([])
})
