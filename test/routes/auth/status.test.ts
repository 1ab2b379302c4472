import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { authRoutes } from '../../../src/front/routes/auth/auth-routes.js'
import type { AuthRoute } from '../../../src/front/routes/auth-route.js'
import { statusRoutes } from '../../../src/front/routes/auth/status.js'
import { outcomeOf, type Account } from '../../support/auth/accounts.js'
import { checkedCall, expectUnchanged, scopedKey, untestedSuccesses } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { authBase, newOrganism, registerIn, type Space } from '../../support/auth/organisms.js'
import { call as send, startServer, type TestServer } from '../../support/server/server.js'

const route = 'GET /v1/auth/status'

/** An auth route as a call, its parameters filled in. */
function callOf({ method, path }: AuthRoute): string {
  const name = method === 'del' ? 'DELETE' : method.toUpperCase()
  return `${name} ${path.replace(':email', 'ada@example.org').replace(':sid', '0'.repeat(32))}`
}

/** How auth routes answer; by default with the root key and without a credential. */
async function outcomes(
  server: TestServer,
  routes: readonly AuthRoute[] = authRoutes,
  keys: readonly (string | null)[] = [null, server.rootKey],
): Promise<Set<string>> {
  const found = new Set<string>()
  await expectUnchanged(server, 'default', async () => {
    for (const call of routes.map(callOf)) {
      for (const key of keys) {
        const body = call.startsWith('P') ? { email: 'ada@example.org' } : undefined
        const outcome = await outcomeOf(checkedCall(server, call, { key, body }))
        found.add(call === route ? `status ${outcome}` : outcome)
      }
    }
  })
  return found
}

const unlicensed = { SERVICE_AUTH_ENABLED: 'true', SERVICE_AUTH_RATE_LIMIT_RPS: '0' }

/** Expects 402 on every auth route, except to valid credentials on those that end access. */
async function expectLicenseRequired(server: TestServer): Promise<void> {
  const closed = authRoutes.filter(({ endsAccess }) => endsAccess !== true)
  const all = new Set(['status 402 license_required', '402 license_required'])
  expect(await outcomes(server, closed)).toEqual(all)
  expect(await outcomes(server, authRoutes, [null, 'nonsense', 'x.y.z'])).toEqual(all)
  // Data is still served.
  expect((await checkedCall(server, 'GET /v1/agents')).status).toBe(200)
}

describe('with a license', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startAuthServer()
  })
  afterAll(() => server.stop())

  it('reports that the add-on is enabled, with any credential', async () => {
    for (const key of [null, server.rootKey, 'nonsense']) {
      const { status, body } = await checkedCall(server, route, { key })
      expect([status, body]).toEqual([200, { enabled: true }])
    }
  })

  it('answers 405 to other methods', async () => {
    const { status, headers } = await checkedCall(server, 'POST /v1/auth/status', { key: null })
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  it('serves routes that end access once it has expired, also in an organism, but not routes that give access', async () => {
    await newOrganism(server, 'acme')
    const accounts = new Map<Space, Account[]>()
    let users = 0
    for (const space of [undefined, 'acme']) {
      const one = () => registerIn(server, space, `user-${accounts.size}-${++users}@example.org`)
      accounts.set(space, [await one(), await one(), await one(), await one()])
    }
    const sids = new Map<string, string>()
    for (const [space, [ada]] of accounts) {
      const { body } = await checkedCall(server, `GET ${authBase(space)}/sessions`, {
        key: ada?.token ?? null,
      })
      sids.set(authBase(space), body.sessions[0].sid)
    }
    await server.halt()
    server = await startServer({ dataDir: server.dataDir, env: unlicensed })
    await expectLicenseRequired(server)
    for (const [space, [ada, eve, bob, dan]] of accounts) {
      if (ada === undefined || eve === undefined || bob === undefined || dan === undefined) throw new Error()
      const base = authBase(space)
      const head = (key: string) => checkedCall(server, 'GET /v1/agents/default/head', { key })
      for (const [list, key] of [
        ['sessions', ada.token],
        ['users', server.rootKey],
        [`users/${encodeURIComponent(ada.email)}/sessions`, server.rootKey],
      ] as const)
        expect(await outcomeOf(checkedCall(server, `GET ${base}/${list}`, { key })), list).toBe(
          '402 license_required',
        )
      const sid = sids.get(base)
      const ended = [
        await checkedCall(server, `DELETE ${base}/sessions/${sid}`, { key: ada.token }),
        await checkedCall(server, `POST ${base}/logout`, { key: eve.token }),
        await checkedCall(server, `POST ${base}/revoke`, { key: bob.token }),
        await checkedCall(server, `DELETE ${base}/users/${encodeURIComponent(dan.email)}`),
        await checkedCall(server, `POST ${base}/keys/rotate`),
      ]
      expect(ended.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
      for (const { token } of [ada, eve, bob, dan])
        expect(await outcomeOf(head(token))).toBe('401 token_revoked')
      const login = { key: null, body: { email: ada.email, password: ada.password } }
      for (const call of [`POST ${base}/login`, `POST ${base}/register`, `GET ${base}/status`])
        expect(await outcomeOf(checkedCall(server, call, call.startsWith('P') ? login : {}))).toBe(
          '402 license_required',
        )
      const refresh = { key: null, body: { refresh_token: ada.refreshToken } }
      expect(await outcomeOf(checkedCall(server, `POST ${base}/refresh`, refresh))).toBe(
        '402 license_required',
      )
      const limited = await scopedKey(server, ['records:read'])
      expect(await outcomeOf(checkedCall(server, `POST ${base}/keys/rotate`, { key: limited.key }))).toBe(
        '403 forbidden',
      )
      for (const call of [
        `POST ${base}/logout`,
        `POST ${base}/revoke`,
        `GET ${base}/sessions`,
        `GET ${base}/users`,
      ])
        for (const key of [null, 'x.y.z', eve.token])
          expect(await outcomeOf(checkedCall(server, call, { key })), call).toBe('402 license_required')
    }
    for (const id of ['none', '__proto__', '%ff']) {
      const revoke = `POST /v1/organisms/${id}/auth/revoke`
      expect((await send(server, revoke, { key: null })).status, id).toBe(402)
    }
    expect(await outcomeOf(checkedCall(server, 'POST /v1/organisms/none/auth/keys/rotate'))).toBe(
      '404 organism_not_found',
    )
  })
})

describe('while the add-on is disabled', () => {
  it('answers {enabled: false}, and 404 on every other auth route', async () => {
    const server = await startServer({ env: { SERVICE_AUTH_RATE_LIMIT_RPS: '0' } })
    try {
      expect((await checkedCall(server, route, { key: null })).body).toEqual({ enabled: false })
      expect(await outcomes(server)).toEqual(new Set(['status 200', '404 auth_disabled']))
    } finally {
      await server.stop()
    }
  })
})

describe('without a valid license', () => {
  it.each([
    ['an invalid license', () => startServer({ env: { ...unlicensed, SERVICE_LICENSE_KEY: 'x.y.z' } })],
    [
      'a license of another authority',
      () => startAuthServer({ env: { SERVICE_LICENSE_PUBLIC_KEY: 'a'.repeat(64) } }),
    ],
  ])(
    'answers 402 on every auth route, except to valid credentials on those that end access: %s',
    async (_what, start) => {
      const server = await start()
      try {
        await expectLicenseRequired(server)
      } finally {
        await server.stop()
      }
    },
  )
})

it('the server answered every documented success', () => {
  expect(untestedSuccesses(statusRoutes)).toEqual([])
})
