import { calculateJwkThumbprint, createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jwksRoutes } from '../../../src/front/routes/auth/jwks.js'
import { register } from '../../support/auth/accounts.js'
import { checkedCall, expectUnchanged, untestedSuccesses } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

const routes = ['GET /v1/auth/jwks', 'GET /.well-known/jwks.json']

describe.each(routes)('%s', (route) => {
  it('returns the current public key and the next one, without a credential', async () => {
    const answer = await expectUnchanged(server, 'default', () => checkedCall(server, route, { key: null }))
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
    const { body } = await checkedCall(server, route, { key: null })
    const { payload } = await jwtVerify(token, createLocalJWKSet(body), { algorithms: ['EdDSA'] })
    expect(payload['email']).toBe(`${routes.indexOf(route)}@example.org`)
    expect(decodeProtectedHeader(token).kid).toBe(body.keys[0].kid)
  })

  it('ignores an invalid credential', async () => {
    expect((await checkedCall(server, route, { key: 'nonsense' })).status).toBe(200)
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(jwksRoutes)).toEqual([])
})
