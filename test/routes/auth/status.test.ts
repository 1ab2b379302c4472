import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { authRoutes } from '../../../src/routes/auth/auth-routes.js'
import type { AuthRoute } from '../../../src/routes/auth-route.js'
import { statusRoutes } from '../../../src/routes/auth/status.js'
import { outcomeOf } from '../../support/accounts.js'
import { ask, leavesUnchanged, unseenSuccesses } from '../../support/answers.js'
import { startAuthServer } from '../../support/auth-server.js'
import { startServer, type TestServer } from '../../support/server.js'

const route = 'GET /v1/auth/status'

/** Each auth route as a call, its parameters filled in. */
const calls = authRoutes.map(({ method, path }: AuthRoute) => {
  const name = method === 'del' ? 'DELETE' : method.toUpperCase()
  return `${name} ${path.replace(':email', 'ada@example.org').replace(':sid', '0'.repeat(32))}`
})

/** How every auth route answers, with the root key and without a credential. */
async function outcomes(server: TestServer): Promise<Set<string>> {
  const found = new Set<string>()
  await leavesUnchanged(server, 'default', async () => {
    for (const call of calls) {
      for (const key of [null, server.rootKey]) {
        const body = call.startsWith('P') ? { email: 'ada@example.org' } : undefined
        const outcome = await outcomeOf(ask(server, call, { key, body }))
        found.add(call === route ? `status ${outcome}` : outcome)
      }
    }
  })
  return found
}

describe('with a license', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startAuthServer()
  })
  afterAll(() => server.stop())

  it('tells anyone that the add-on is on, whatever credential comes along', async () => {
    for (const key of [null, server.rootKey, 'nonsense']) {
      const { status, body } = await ask(server, route, { key })
      expect([status, body]).toEqual([200, { enabled: true }])
    }
  })

  it('answers no other method', async () => {
    const { status, headers } = await ask(server, 'POST /v1/auth/status', { key: null })
    expect([status, headers.get('allow')]).toEqual([405, 'GET'])
  })
})

describe('while the add-on is off', () => {
  it('answers {enabled: false}, and 404 on every other auth route', async () => {
    const server = await startServer({ env: { SERVICE_AUTH_RATE_LIMIT_RPS: '0' } })
    try {
      expect((await ask(server, route, { key: null })).body).toEqual({ enabled: false })
      expect(await outcomes(server)).toEqual(new Set(['status 200', '404 auth_disabled']))
    } finally {
      await server.stop()
    }
  })
})

describe('without a valid license', () => {
  it.each([
    ['no license', {}],
    ['what is no license', { SERVICE_LICENSE_KEY: 'x.y.z' }],
    ['a license of another authority', { SERVICE_LICENSE_PUBLIC_KEY: 'a'.repeat(64) }],
  ])('answers 402 on every auth route: %s', async (_what, env) => {
    const server = await ('SERVICE_LICENSE_PUBLIC_KEY' in env
      ? startAuthServer({ env })
      : startServer({ env: { SERVICE_AUTH_ENABLED: 'true', SERVICE_AUTH_RATE_LIMIT_RPS: '0', ...env } }))
    try {
      expect(await outcomes(server)).toEqual(new Set(['status 402 license_required', '402 license_required']))
      // Data is served all the same.
      expect((await ask(server, 'GET /v1/agents')).status).toBe(200)
    } finally {
      await server.stop()
    }
  })
})

it('answered every documented success', () => {
  expect(unseenSuccesses(statusRoutes)).toEqual([])
})
