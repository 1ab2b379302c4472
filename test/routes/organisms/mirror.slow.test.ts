import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { authRoutes, organismAuthRoutes } from '../../../src/front/routes/auth/auth-routes.js'
import { usualPassword } from '../../support/auth/accounts.js'
import { checkedCall, headOf, scopedKey } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { partsOf } from '../../support/proof/forging.js'
import { auditAgent, authBase, newOrganism, registerIn } from '../../support/auth/organisms.js'
import { metricsNow } from '../../support/http/metrics.js'
import { RawConnection } from '../../support/http/raw-http.js'
import { startServer, type TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2' } })
  await newOrganism(server, 'acme')
  await newOrganism(server, 'bare', { auth: false })
})
afterAll(() => server.stop())

const counterparts = organismAuthRoutes.filter(({ organism }) => organism === 'initialised')

/** A call of a counterpart, with example values for every parameter except the organism. */
const callOf = ({ method, path }: (typeof counterparts)[number], organism: string) =>
  `${method === 'del' ? 'DELETE' : method.toUpperCase()} ${path.replace(':organism_id', organism).replaceAll(/:[a-z_]+/g, 'x')}`

const outcome = async (pending: ReturnType<typeof checkedCall>) => {
  const { status, body } = await pending
  return status < 400 ? `${status}` : `${status} ${body.code}`
}

describe('the routes of organisms', () => {
  it('include a counterpart of every route below /v1/auth, and init', () => {
    const paths = authRoutes.map(({ path }) => path).filter((path) => path.startsWith('/v1/auth/'))
    expect(paths.length).toBeGreaterThan(20)
    expect(counterparts.map(({ path }) => path.replace('/organisms/:organism_id', ''))).toEqual(paths)
  })

  it('answer 404 without a namespace, for every caller, and create none', async () => {
    const { token } = await registerIn(server, 'acme', 'passing@example.com')
    for (const route of counterparts) {
      for (const key of [null, server.rootKey, token]) {
        expect(await outcome(checkedCall(server, callOf(route, 'absent'), { key }))).toBe(
          '404 organism_not_found',
        )
        expect(await outcome(checkedCall(server, callOf(route, 'bare'), { key }))).toBe(
          '404 namespace_not_found',
        )
      }
    }
    expect(await headOf(server, auditAgent('bare'))).toBeUndefined()
  })

  it('serve immediately after init', async () => {
    await newOrganism(server, 'fresh', { auth: false })
    const status = () => outcome(checkedCall(server, 'GET /v1/organisms/fresh/auth/status', { key: null }))
    expect(await status()).toBe('404 namespace_not_found')
    await checkedCall(server, 'POST /v1/organisms/fresh/auth/init')
    expect(await status()).toBe('200')
  })

  it('sign in by every method, with the same answers as the root namespace, also after a restart', async () => {
    const base = authBase('acme')
    const email = 'grace@example.com'
    const { token, refreshToken, userId } = await registerIn(server, 'acme', email)
    expect(partsOf(token).claims).toMatchObject({ sub: userId, email })
    expect(partsOf(token).claims['iss']).toMatch(/\/v1\/organisms\/acme$/)
    const post = (path: string, body: unknown, key: string | null = null) =>
      checkedCall(server, `POST ${base}/${path}`, { key, body })
    const login = await post('login', { email, password: usualPassword })
    const refreshed = await post('refresh', { refresh_token: refreshToken })
    const link = await post('magic-link/send', { email })
    const linked = await post('magic-link/verify', { token: link.body.token })
    expect([login.status, refreshed.status, linked.status]).toEqual([200, 200, 200])
    const reset = await post('password/reset-request', { email }, server.rootKey)
    expect(
      (await post('password/reset', { token: reset.body.token, password: 'a new one entirely' })).status,
    ).toBe(200)
    expect((await post('login', { email, password: usualPassword })).body.code).toBe('invalid_credentials')
    const again = await post('login', { email, password: 'a new one entirely' })
    expect((await checkedCall(server, `GET ${base}/me`, { key: again.body.token })).body).toMatchObject({
      email,
    })
    const metadata = { body: { metadata: { role: 'x' } } }
    const path = `${base}/users/${email}/app-metadata`
    expect((await checkedCall(server, `PATCH ${path}`, metadata)).body).toEqual({
      email,
      app_metadata: { role: 'x' },
    })
    await server.halt()
    server = await startAuthServer({ dataDir: server.dataDir })
    expect((await checkedCall(server, `GET ${base}/me`, { key: again.body.token })).body).toMatchObject({
      email,
    })
    expect((await post('logout', undefined, again.body.token)).body).toEqual({
      logged_out: true,
      sessions: 1,
    })
    expect(await outcome(checkedCall(server, `GET ${base}/me`, { key: again.body.token }))).toBe(
      '401 token_revoked',
    )
  })

  it('publish separate keys, and rotate them separately', async () => {
    const kids = async (path: string) => {
      const { body } = await checkedCall(server, `GET ${path}`, { key: null })
      return body.keys.map(({ kid }: { kid: string }) => kid)
    }
    await newOrganism(server, 'other')
    const [root, acme, other] = [
      await kids('/v1/auth/jwks'),
      await kids('/v1/organisms/acme/auth/jwks'),
      await kids('/v1/organisms/other/auth/jwks'),
    ]
    expect(new Set([...root, ...acme, ...other]).size).toBe(6)
    expect((await checkedCall(server, 'POST /v1/organisms/acme/auth/keys/rotate')).body.kid).toBe(acme[1])
    expect(await kids('/v1/auth/jwks')).toEqual(root)
    expect(await kids('/v1/organisms/other/auth/jwks')).toEqual(other)
  })

  it('accept keys with admin:organisms, but no weaker keys', async () => {
    const organisms = await scopedKey(server, ['admin:organisms'])
    const lesser = await scopedKey(server, ['records:read', 'records:write', 'agents:admin'])
    const limited = await scopedKey(server, ['admin:organisms'], ['acme::*'])
    const users = (key: string, base: string) => outcome(checkedCall(server, `GET ${base}/users`, { key }))
    expect(await users(organisms.key, authBase('acme'))).toBe('200')
    expect(await users(organisms.key, authBase(undefined))).toBe('403 forbidden')
    expect(await users(server.rootKey, authBase('acme'))).toBe('200')
    for (const { key } of [lesser, limited]) expect(await users(key, authBase('acme'))).toBe('403 forbidden')
  })

  it('have one row of metrics per route for all organisms', async () => {
    for (const id of ['acme', 'bare', 'absent']) {
      await checkedCall(server, `GET ${authBase(id)}/status`, { key: null })
    }
    const text = await metricsNow(() => checkedCall(server, 'GET /metrics'))
    expect(text).toContain('route="/v1/organisms/:organism_id/auth/status"')
    expect(text).not.toMatch(/route="[^"]*(?:acme|absent|bare)/)
  })
})

describe('a token that claims an organism', () => {
  it('is answered 401 if the organism or its namespace does not exist, never 5xx', async () => {
    const { token } = await registerIn(server, 'acme', 'model@example.com')
    const { header, claims } = partsOf(token)
    const { privateKey, publicKey } = await generateKeyPair('EdDSA')
    expect(await exportJWK(publicKey)).toMatchObject({ crv: 'Ed25519' })
    const issuer = String(claims['iss']).replace(/acme$/, '')
    for (const id of ['absent', 'bare', 'acme', '', '..', 'a::b', 'a/b', 'acme/', '\0', 'x'.repeat(500)]) {
      const forged = await new SignJWT({ ...claims, iss: issuer + id })
        .setProtectedHeader({ ...header, alg: 'EdDSA' })
        .sign(privateKey)
      for (const route of [
        'GET /v1/auth/me',
        'GET /v1/organisms/acme/auth/me',
        'GET /v1/agents/acme::auth/head',
      ]) {
        expect(await outcome(checkedCall(server, route, { key: forged })), `${id} ${route}`).toBe(
          '401 invalid_token',
        )
      }
    }
  })
})

describe('an invalid id', () => {
  const raws = [
    'acme::',
    'acme::auth',
    'a::b',
    '::',
    'acme%2f',
    'acme%2fauth',
    '%2F..',
    '%2F..%2Facme',
    'acme%2F..%2Fbare',
    '..',
    '%2e%2e',
    '.',
    '%2e',
    'acme..',
    'acme%00',
    '%00acme',
    '%00',
    'acme%0a',
    'acme%20',
    '%61cme%3a%3aauth',
    '%c3%a9',
    'e%cc%81',
    '%ef%bc%a1cme',
    '%d0%b0cme',
  ]

  /** Sends the path unchanged: fetch would normalize it. */
  async function statusOf(method: string, path: string, body = ''): Promise<number> {
    const connection = await RawConnection.open(server)
    try {
      const head = `${method} ${path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${server.rootKey}\r\n`
      connection.write(
        `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      const { statuses } = await connection.until((answer) => answer.statuses.length > 0)
      return statuses[0] ?? 0
    } finally {
      connection.destroy()
    }
  }

  it('reaches no namespace', async () => {
    await registerIn(server, 'acme', 'held@example.com')
    const state = async () => {
      const users = await checkedCall(server, 'GET /v1/organisms/acme/auth/users')
      const agents = await checkedCall(server, 'GET /v1/agents?limit=1000')
      return [users.body, agents.body, await headOf(server, 'acme::auth'), await headOf(server, 'default')]
    }
    const before = await state()
    const body = JSON.stringify({ email: 'held@example.com', password: 'another one of them' })
    for (const raw of raws) {
      const base = `/v1/organisms/${raw}/auth`
      expect([raw, await statusOf('POST', `${base}/register`, body)]).toEqual([raw, 404])
      expect([raw, await statusOf('GET', `${base}/users`)]).toEqual([raw, 404])
      expect([raw, await statusOf('DELETE', `${base}/users/held@example.com`)]).toEqual([raw, 404])
      expect([raw, await statusOf('POST', `${base}/init`)]).toEqual([raw, 404])
      expect([
        raw,
        await statusOf('POST', `/v1/organisms/${raw}/agents`, '{"name":"x","zone":"free"}'),
      ]).toEqual([raw, 404])
    }
    // A path that decodes to an id is that id.
    expect(await statusOf('GET', '/v1/organisms/%61cme/auth/users')).toBe(200)
    expect(await state()).toEqual(before)
  })
})

describe('the activation', () => {
  it('answers 404 auth_disabled on every counterpart except status while the add-on is disabled', async () => {
    const off = await startServer({ env: { SERVICE_AUTH_RATE_LIMIT_RPS: '0' } })
    try {
      await newOrganism(off, 'acme', { auth: false })
      for (const route of counterparts) {
        const { status, body } = await checkedCall(off, callOf(route, 'acme'), { key: null })
        if (route.path.endsWith('/status')) expect([status, body]).toEqual([200, { enabled: false }])
        else expect([route.path, status, body.code]).toEqual([route.path, 404, 'auth_disabled'])
      }
    } finally {
      await off.stop()
    }
  })

  it('answers 402 on init and on every counterpart without a license, except those that end access', async () => {
    const unlicensed = await startServer({
      env: { SERVICE_AUTH_ENABLED: 'true', SERVICE_AUTH_RATE_LIMIT_RPS: '0' },
    })
    try {
      for (const route of organismAuthRoutes.filter(({ endsAccess }) => endsAccess !== true)) {
        expect(await outcome(checkedCall(unlicensed, callOf(route, 'acme')))).toBe('402 license_required')
      }
    } finally {
      await unlicensed.stop()
    }
  })
})

it('counts counterparts and init as auth routes for the rate limit', async () => {
  const env = { SERVICE_AUTH_RATE_LIMIT_RPS: '1', SERVICE_AUTH_RATE_LIMIT_BURST: '2' }
  const limited = await startAuthServer({ env })
  try {
    const calls = [
      'POST /v1/organisms/acme/auth/init',
      'GET /v1/organisms/acme/auth/status',
      'GET /v1/auth/status',
    ]
    const outcomes = []
    for (const route of calls) outcomes.push(await outcome(checkedCall(limited, route)))
    expect(outcomes.slice(1)).toContain('429 rate_limited')
    expect(outcomes[0]).toBe('404 organism_not_found')
    const refused = await checkedCall(limited, 'POST /v1/organisms/acme/auth/login', { key: null, body: {} })
    expect([429, 404]).toContain(refused.status)
  } finally {
    await limited.stop()
  }
})
