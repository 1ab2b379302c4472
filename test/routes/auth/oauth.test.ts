import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { oauthRoutes } from '../../../src/front/routes/auth/oauth.js'
import { linkToken, register, tally, tryLogin, usualPassword } from '../../support/auth/accounts.js'
import { checkedCall, expectUnchanged, recordSuccess, untestedSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { freePort } from '../../support/server/free-port.js'
import { type GithubServer, startGithubServer } from '../../support/auth/github-server.js'
import { OauthBrowser } from '../../support/auth/oauth-browser.js'
import { type OidcProcess, startOidcProcess } from '../../support/auth/oidc.js'
import type { TestServer } from '../../support/server/server.js'

type Provider = 'google' | 'github'

const app = 'https://app.example.com/signed-in'
const client = { clientId: 'strandfast', clientSecret: 'the secret of google' }

let server: TestServer
let google: OidcProcess
let github: GithubServer
let env: Record<string, string>

beforeAll(async () => {
  const [port, googlePort] = [await freePort(), await freePort()]
  const base = `http://127.0.0.1:${port}`
  github = await startGithubServer()
  google = await startOidcProcess({
    port: googlePort,
    ...client,
    authMethod: 'client_secret_basic',
    redirectUris: [`${base}/v1/auth/oauth/google/callback`],
  })
  env = {
    SERVICE_PORT: String(port),
    SERVICE_AUTH_REQUIRE_EMAIL_VERIFY: 'true',
    SERVICE_OAUTH_GOOGLE_CLIENT_ID: client.clientId,
    SERVICE_OAUTH_GOOGLE_CLIENT_SECRET: client.clientSecret,
    SERVICE_OAUTH_GOOGLE_ISSUER_URL: google.issuerUrl,
    SERVICE_OAUTH_GITHUB_CLIENT_ID: github.clientId,
    SERVICE_OAUTH_GITHUB_CLIENT_SECRET: github.clientSecret,
    SERVICE_OAUTH_GITHUB_BASE_URL: github.url,
    SERVICE_OAUTH_REDIRECT_BASE_URL: base,
    SERVICE_OAUTH_ALLOWED_REDIRECT_URIS: `${app}, https://other.example.com/cb`,
  }
  server = await startAuthServer({ env })
})

beforeEach(() => github.faults.clear())

afterAll(async () => {
  await server.stop()
  await google.stop()
  await github.stop()
})

function authorizeUrl(provider: Provider, query: Record<string, string> = { redirect_uri: app }): string {
  return `${server.url}/v1/auth/oauth/${provider}/authorize?${new URLSearchParams(query)}`
}

const isCallback = (url: URL) => url.pathname.endsWith('/callback')
const isApp = (url: URL) => url.host.endsWith('.example.com')

/** Signs in at a provider, and returns the address of the callback without calling it. */
function toCallback(
  browser: OauthBrowser,
  provider: Provider,
  { login, query }: { login?: string; query?: Record<string, string> } = {},
): Promise<URL> {
  return browser.follow(authorizeUrl(provider, query), login, isCallback)
}

/** Signs in at a provider and follows the callback. @returns the final address with its parameters */
async function signIn(
  provider: Provider,
  options: { login?: string; query?: Record<string, string>; browser?: OauthBrowser } = {},
): Promise<{ url: URL; results: Record<string, string> }> {
  const browser = options.browser ?? new OauthBrowser()
  const url = await browser.follow((await toCallback(browser, provider, options)).href, undefined, isApp)
  return { url, results: Object.fromEntries(new URLSearchParams(url.hash.slice(1) || url.search)) }
}

/** Calls the callback once. @returns its outcome */
async function callCallback(browser: OauthBrowser, url: URL): Promise<string> {
  const answer = await browser.get(url)
  if (answer.status !== 302) return `${answer.status} ${(await answer.json()).code}`
  recordSuccess(`GET ${url.pathname}`, answer)
  const { searchParams } = new URL(answer.headers.get('location') ?? '')
  return searchParams.get('error') ?? 'signed in'
}

const mailOf = (email: string, more: object = {}) => [
  { email: 'old@example.net', primary: false, verified: true },
  { email, primary: true, verified: true, ...more },
]

let lastId = 1_000

/** Sets the GitHub account that signs in next. */
function githubUser(email: string, more: object = {}): number {
  lastId += 1
  github.user = { id: lastId, emails: mailOf(email, more) }
  return lastId
}

describe('a sign-in with Google', () => {
  it('creates a verified account once, and finds it by the subject after that', async () => {
    await google.account('g-ada', { email: 'Ada@Example.org', email_verified: true })
    const { result, types, records } = await auditsOf(server, () => signIn('google', { login: 'g-ada' }))
    const { url, results } = result
    expect(`${url.origin}${url.pathname}`).toBe(app)
    expect(Object.keys(results).toSorted()).toEqual([
      'email',
      'expires_in',
      'refresh_token',
      'token',
      'token_type',
    ])
    expect(results['email']).toBe('ada@example.org')
    const { sub, sid, amr } = decodeJwt(results['token'] ?? '')
    expect(amr).toEqual(['fed'])
    expect(types).toEqual(['auth/register', 'auth/oauth_login'])
    expect(records[1]?.payload).toMatchObject({ user_id: sub, sid, outcome: 'success' })
    const me = await checkedCall(server, 'GET /v1/auth/me', { key: results['token'] ?? '' })
    expect(me.body).toMatchObject({ user_id: sub, email: 'ada@example.org', verified: true })

    await google.account('g-ada', { email: 'ada@elsewhere.example', email_verified: false })
    const again = await auditsOf(server, () => signIn('google', { login: 'g-ada' }))
    expect(again.types).toEqual(['auth/oauth_login'])
    expect(decodeJwt(again.result.results['token'] ?? '').sub).toBe(sub)
    expect(again.result.results['email']).toBe('ada@example.org')
  })

  it('puts the tokens after # on request, and keeps the query of the address', async () => {
    await google.account('g-eve', { email: 'eve@example.org', email_verified: true })
    const query = { redirect_uri: `${app}/deeper?next=%2Fa%20b&x=1`, redirect_mode: 'fragment' }
    const { url, results } = await signIn('google', { login: 'g-eve', query })
    expect(url.href.split('#')[0]).toBe(query.redirect_uri)
    expect(results).toMatchObject({ email: 'eve@example.org', token_type: 'Bearer' })
    const { body } = await checkedCall(server, 'POST /v1/auth/refresh', {
      key: null,
      body: { refresh_token: results['refresh_token'] },
    })
    expect(body).toHaveProperty('token')
    const behind = await signIn('google', { login: 'g-eve', query: { redirect_uri: query.redirect_uri } })
    expect(behind.url.search).toMatch(/^\?next=%2Fa%20b&x=1&token=/)
  })

  it('refuses an unverified e-mail, and reports the reason to the application', async () => {
    await register(server, 'victim@example.org')
    await google.account('g-thief', { email: 'victim@example.org', email_verified: false })
    await google.account('g-absent', {})
    for (const login of ['g-thief', 'g-absent']) {
      const { results } = await expectUnchanged(server, 'default', () => signIn('google', { login }))
      expect(results).toEqual({
        error: 'access_denied',
        error_description: 'The provider has not verified the e-mail',
      })
    }
  })

  it('refuses a mailbox that is linked to another account of the provider', async () => {
    await google.account('g-first', { email: 'moved@example.org', email_verified: true })
    await signIn('google', { login: 'g-first' })
    // The mailbox was given to another person there.
    await google.account('g-second', { email: 'moved@example.org', email_verified: true })
    const { result, types, records } = await auditsOf(server, () => signIn('google', { login: 'g-second' }))
    expect(result.results).toEqual({
      error: 'access_denied',
      error_description: 'The e-mail is linked to another account of the provider',
    })
    expect(types).toEqual(['auth/login_failed'])
    const why = { method: 'oauth', reason: 'email_taken', outcome: 'failure', sid: null }
    expect(records[0]?.payload).toMatchObject(why)
  })

  it('reports to the application that the user cancelled', async () => {
    const browser = new OauthBrowser()
    const back = await browser.follow(authorizeUrl('google'), undefined, isCallback)
    expect(back.searchParams.get('error')).toBe('access_denied')
    expect(await callCallback(browser, back)).toBe('access_denied')
  })

  it('removes the password and links that another person had set for the e-mail before', async () => {
    await register(server, 'hijacked@example.org', usualPassword)
    const planted = await linkToken(server, 'password/reset-request', 'hijacked@example.org')
    await google.account('g-owner', { email: 'hijacked@example.org', email_verified: true })
    const { types } = await auditsOf(server, () => signIn('google', { login: 'g-owner' }))
    expect(types).toEqual(['auth/oauth_login'])
    expect((await tryLogin(server, 'hijacked@example.org', usualPassword)).body.code).toBe(
      'invalid_credentials',
    )
    await refused(server, 'POST /v1/auth/password/reset', {
      body: { token: planted, password: usualPassword },
      outcome: '400 invalid_token',
    })
  })

  it('refuses answers of another issuer, without an issuer, and codes of another sign-in', async () => {
    await google.account('g-mix', { email: 'mix@example.org', email_verified: true })
    const changes: ((query: URLSearchParams) => void)[] = [
      (query) => query.set('iss', 'https://evil.example.net'),
      (query) => query.delete('iss'),
      (query) => query.set('code', 'of-absent'),
      (query) => query.append('code', 'another'),
    ]
    for (const change of changes) {
      const browser = new OauthBrowser()
      const back = await toCallback(browser, 'google', { login: 'g-mix' })
      change(back.searchParams)
      expect(await callCallback(browser, back)).toBe('server_error')
    }
    const [one, other] = [new OauthBrowser(), new OauthBrowser()]
    const stolen = await toCallback(one, 'google', { login: 'g-mix' })
    const own = await toCallback(other, 'google', { login: 'g-mix' })
    own.searchParams.set('code', stolen.searchParams.get('code') ?? '')
    expect(await callCallback(other, own)).toBe('server_error')
  })
})

describe('a sign-in with GitHub', () => {
  it('identifies the user by number, and uses the primary e-mail', async () => {
    const id = githubUser('Grace@Example.org')
    const first = await signIn('github')
    expect(first.results['email']).toBe('grace@example.org')
    github.user = { id, emails: mailOf('renamed@example.org') }
    const second = await signIn('github')
    expect(second.results['email']).toBe('grace@example.org')
    const subs = [first, second].map(({ results }) => decodeJwt(results['token'] ?? '').sub)
    expect(new Set(subs).size).toBe(1)
    // Another number is another user, even with the same mailbox.
    githubUser('grace@example.org')
    expect((await signIn('github')).results['error']).toBe('access_denied')
  })

  it('refuses an unverified primary e-mail and malformed answers', async () => {
    githubUser('unverified@example.org', { verified: false })
    expect((await signIn('github')).results['error']).toBe('access_denied')
    for (const user of [
      { id: 'not a number', emails: mailOf('odd@example.org') },
      { id: 77, emails: { message: 'not a list' } },
    ]) {
      github.user = user
      expect((await signIn('github')).results).toEqual({ error: 'server_error' })
    }
    github.user = { id: 78, emails: mailOf('no e-mail at all') }
    expect((await signIn('github')).results['error']).toBe('access_denied')
  })

  it('reports an error of the provider to the application, without details', async () => {
    for (const path of ['/login/oauth/access_token', '/api/v3/user', '/api/v3/user/emails']) {
      githubUser('broken@example.org')
      github.faults = new Map([[path, (response) => response.writeHead(500).end('stack trace')]])
      expect((await signIn('github')).results).toEqual({ error: 'temporarily_unavailable' })
      github.faults = new Map([[path, (response) => response.destroy()]])
      expect((await signIn('github')).results).toEqual({ error: 'temporarily_unavailable' })
      const elsewhere = { location: 'https://evil.example.net' }
      github.faults = new Map([[path, (response) => response.writeHead(302, elsewhere).end()]])
      expect((await signIn('github')).results).toEqual({ error: 'server_error' })
      github.faults = new Map([[path, (response) => response.end('x'.repeat(300_000))]])
      expect((await signIn('github')).results).toEqual({ error: 'server_error' })
    }
    expect(server.stderr()).toContain('a sign-in with a provider failed')
    expect(server.stderr()).not.toContain(github.clientSecret)
  })

  it('creates a new user after the account was deleted', async () => {
    githubUser('again@example.org')
    const before = await signIn('github')
    expect((await checkedCall(server, 'DELETE /v1/auth/users/again@example.org')).status).toBe(200)
    const { result, types } = await auditsOf(server, () => signIn('github'))
    expect(types).toEqual(['auth/register', 'auth/oauth_login'])
    const sub = (results: Record<string, string>) => decodeJwt(results['token'] ?? '').sub
    expect(sub(result.results)).not.toBe(sub(before.results))
  })
})

describe('the callback', () => {
  it('succeeds once for concurrent requests', async () => {
    githubUser('once@example.org')
    const browser = new OauthBrowser()
    const back = await toCallback(browser, 'github')
    const { result, types } = await auditsOf(server, () =>
      Promise.all(Array.from({ length: 16 }, () => callCallback(browser, back))),
    )
    expect(tally(result)).toEqual({ 'signed in': 1, '401 oauth_failed': 15 })
    expect(types).toEqual(['auth/register', 'auth/oauth_login'])
    expect(await callCallback(browser, back)).toBe('401 oauth_failed')
  })

  it('is refused in another browser, without a request to the provider', async () => {
    githubUser('attacker@example.org')
    const [attacker, victim] = [new OauthBrowser(), new OauthBrowser()]
    const back = await toCallback(attacker, 'github')
    await toCallback(victim, 'github')
    const requestCount = github.requested.length
    expect(await expectUnchanged(server, 'default', () => callCallback(victim, back))).toBe(
      '401 oauth_failed',
    )
    expect(await callCallback(new OauthBrowser(), back)).toBe('401 oauth_failed')
    expect(github.requested).toHaveLength(requestCount)
    expect(await callCallback(attacker, back)).toBe('signed in')
  })

  it('shows a browser without the cookie a page with a link to the application, and other clients a problem', async () => {
    githubUser('pages@example.org')
    const browser = new OauthBrowser()
    const back = await toCallback(browser, 'github')
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
    const page = (url: URL) => new OauthBrowser().get(url, { headers: { accept } })
    const shown = await page(back)
    expect([shown.status, shown.headers.get('content-type')]).toEqual([401, 'text/html; charset=utf-8'])
    expect(shown.headers.get('content-security-policy')).toContain("default-src 'none'")
    const { origin, host } = new URL(app)
    expect(await shown.text()).toContain(`<a href="${origin}/">${host}</a>`)
    const problem = await new OauthBrowser().get(back)
    expect(await problem.text()).not.toContain(host)
    expect(await callCallback(browser, back)).toBe('signed in')
    const again = await page(back)
    expect([again.status, await again.text()]).toEqual([401, expect.stringContaining('the application')])
  })

  it('is refused with a state that is missing, unknown, repeated or of another provider', async () => {
    githubUser('states@example.org')
    const browser = new OauthBrowser()
    await browser.get(authorizeUrl('google'))
    const back = await toCallback(browser, 'github')
    const state = back.searchParams.get('state') ?? ''
    const ways: ((url: URL) => void)[] = [
      (url) => url.searchParams.delete('state'),
      (url) => url.searchParams.set('state', Buffer.alloc(32, 1).toString('base64url')),
      (url) => url.searchParams.set('state', `${state}=`),
      (url) => url.searchParams.append('state', state),
      (url) => (url.pathname = '/v1/auth/oauth/google/callback'),
    ]
    for (const way of ways) {
      const url = new URL(back)
      way(url)
      expect(await callCallback(browser, url), url.href).toBe('401 oauth_failed')
    }
    expect(await callCallback(browser, back)).toBe('signed in')
    await refused(server, 'GET /v1/auth/oauth/github/callback?code=x', { outcome: '401 oauth_failed' })
  })

  it('succeeds for two tabs of one browser', async () => {
    githubUser('tabs@example.org')
    const browser = new OauthBrowser()
    const one = await toCallback(browser, 'github')
    const other = await toCallback(browser, 'github')
    expect([await callCallback(browser, one), await callCallback(browser, other)]).toEqual([
      'signed in',
      'signed in',
    ])
  })

  it('is refused in another namespace', async () => {
    for (const route of ['POST /v1/organisms', 'POST /v1/organisms/acme/auth/init']) {
      const body = route.endsWith('init') ? undefined : { organism_id: 'acme', name: 'Acme' }
      expect((await checkedCall(server, route, { ...(body !== undefined && { body }) })).status).toBe(201)
    }
    githubUser('member@example.org')
    const inAcme = authorizeUrl('github').replace('/v1/auth/', '/v1/organisms/acme/auth/')
    const member = new OauthBrowser()
    const back = await member.follow(inAcme, undefined, isCallback)
    expect(back.pathname).toBe('/v1/organisms/acme/auth/oauth/github/callback')
    const elsewhere = new URL(back)
    elsewhere.pathname = '/v1/auth/oauth/github/callback'
    const cookie = [...member.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(elsewhere, { headers: { cookie }, redirect: 'manual' })
    expect([answer.status, (await answer.json()).code]).toEqual([401, 'oauth_failed'])
    const location = (await member.get(back)).headers.get('location') ?? ''
    const token = new URL(location).searchParams.get('token') ?? ''
    expect((await checkedCall(server, 'GET /v1/organisms/acme/auth/me', { key: token })).status).toBe(200)
    await refused(server, 'GET /v1/auth/me', { key: token, outcome: '401 invalid_token' })
  })
})

describe('starting a sign-in', () => {
  it('redirects the browser to the provider with PKCE, a state and a nonce, bound by a cookie', async () => {
    const starts = ['google', 'google', 'github'] as const
    const answers = await Promise.all(starts.map((one) => new OauthBrowser().get(authorizeUrl(one))))
    const [url, other, hub] = answers.map(({ headers }) => new URL(headers.get('location') ?? ''))
    const query = Object.fromEntries(url?.searchParams ?? [])
    expect(query).toMatchObject({
      response_type: 'code',
      client_id: client.clientId,
      scope: 'openid email',
      code_challenge_method: 'S256',
      redirect_uri: `${server.url}/v1/auth/oauth/google/callback`,
    })
    for (const name of ['state', 'nonce', 'code_challenge']) {
      expect(query[name]).toMatch(/^[\w-]{43}$/)
      expect(other?.searchParams.get(name)).not.toBe(query[name])
    }
    expect(hub?.searchParams.get('code_challenge_method')).toBe('S256')
    const { status, headers } = answers[0] ?? new Response()
    expect(status).toBe(302)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('set-cookie')).toMatch(
      /^strandfast-oauth-google=[\w-]{43}; Path=\/v1\/auth\/oauth\/google; Max-Age=600; HttpOnly; SameSite=Lax$/,
    )
    recordSuccess('GET /v1/auth/oauth/google/authorize', answers[0] ?? new Response())
  })

  it.each([
    '',
    'https://app.example.com.evil.test/signed-in',
    'https://app.example.com@evil.test/signed-in',
    'https://user@app.example.com/signed-in',
    'https://evil.test\\@app.example.com/signed-in',
    'https://app.example.com/signed-in\\..\\open',
    '//app.example.com/signed-in',
    'https:///app.example.com/signed-in',
    'https://app.example.com//signed-in',
    'https://app.example.com/signed-in//evil.test',
    'https://app.example.com/signed-in/../open',
    'https://app.example.com/signed-in/%2e%2e/open',
    'https://app.example.com/signed-in/.%2E/open',
    'https://app.example.com/signed-in/..%2fopen',
    'https://app.example.com/signed-in/..;/open',
    'https://app.example.com/signed-inx',
    'https://app.example.com/signed',
    'https://app.example.com/',
    'http://app.example.com/signed-in',
    'https://app.example.com:444/signed-in',
    'https://app.example.com/signed-in#fragment',
    'https://app.example.com/signed-in\r\nSet-Cookie: a=b',
    'https://app.example.com/signed-in?token=planted',
    'https://app.example.com/signed-in?%74oken=planted',
    'javascript:alert(1)//https://app.example.com/signed-in',
    'data:text/html,https://app.example.com/signed-in',
    '/signed-in',
  ])('is refused with 400 for the address %j', async (redirectUri) => {
    const url = `/v1/auth/oauth/github/authorize?${new URLSearchParams({ redirect_uri: redirectUri })}`
    const answer = await refused(server, `GET ${url}`, { outcome: '400 redirect_not_allowed' })
    expect(answer.headers.get('location')).toBeNull()
    expect(answer.headers.get('set-cookie')).toBeNull()
  })

  it('is refused for two addresses, an invalid mode, or an unknown provider', async () => {
    const route = (provider: string, query: string) => `GET /v1/auth/oauth/${provider}/authorize?${query}`
    const uri = `redirect_uri=${encodeURIComponent(app)}`
    const outcomes: [string, string][] = [
      [route('github', `${uri}&${uri}`), '400 validation_failed'],
      [route('github', `${uri}&redirect_mode=popup`), '400 validation_failed'],
      [route('gitlab', uri), '404 not_found'],
      [route('Google', uri), '404 not_found'],
      ['GET /v1/auth/oauth/gitlab/callback?state=x', '404 not_found'],
    ]
    for (const [one, outcome] of outcomes) await refused(server, one, { outcome })
  })

  it('reports to the application that the provider is unreachable', async () => {
    await server.halt()
    const gone = { ...env, SERVICE_OAUTH_GOOGLE_ISSUER_URL: `http://127.0.0.1:${await freePort()}` }
    server = await startAuthServer({ dataDir: server.dataDir, env: gone })
    const answer = await new OauthBrowser().get(authorizeUrl('google'))
    expect(answer.headers.get('location')).toBe(`${app}?error=temporarily_unavailable`)
  })
})

describe('a server with other settings', () => {
  const { SERVICE_OAUTH_ALLOWED_REDIRECT_URIS: _allowed, ...unlisted } = {
    SERVICE_OAUTH_ALLOWED_REDIRECT_URIS: '',
    SERVICE_OAUTH_GITHUB_CLIENT_ID: 'id',
    SERVICE_OAUTH_GITHUB_CLIENT_SECRET: 'secret',
    SERVICE_OAUTH_REDIRECT_BASE_URL: 'https://auth.example.com/base/',
  }
  const route = `GET /v1/auth/oauth/github/authorize?redirect_uri=${encodeURIComponent(app)}`

  async function withServer(more: Record<string, string>, use: (other: TestServer) => Promise<void>) {
    const other = await startAuthServer({ env: more })
    await use(other).finally(() => other.stop())
  }

  it('answers 400 if no address is allowed', async () => {
    await withServer(unlisted, async (other) => {
      await refused(other, route, { outcome: '400 redirect_not_allowed' })
      await refused(other, route.replace('github', 'google'), { outcome: '400 redirect_not_allowed' })
      expect(other.stderr()).toContain('SERVICE_OAUTH_ALLOWED_REDIRECT_URIS is not set')
    })
  })

  it('allows any address in development on request, warns about it, and still refuses malformed ones and providers without credentials', async () => {
    await withServer({ ...unlisted, SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI: 'true' }, async (other) => {
      expect(other.stderr()).toContain('SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI=true')
      const url = `${other.url}${route.slice(4).replace('app.example.com', 'anywhere.test')}`
      const { status, headers } = await fetch(url, { redirect: 'manual' })
      expect(status).toBe(302)
      // With https, the cookie is limited to this host.
      expect(headers.get('set-cookie')).toMatch(
        /^__Host-strandfast-oauth-github=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
      )
      const callback = new URL(headers.get('location') ?? '').searchParams.get('redirect_uri')
      expect(callback).toBe('https://auth.example.com/base/v1/auth/oauth/github/callback')
      await refused(other, `${route}%2F..%2Fopen`, { outcome: '400 redirect_not_allowed' })
      for (const one of [route.replace('github', 'google'), 'GET /v1/auth/oauth/google/callback?state=x'])
        await refused(other, one, { outcome: '501 oauth_not_configured' })
    })
  })

  it('answers 507 while its disk is full, without a redirect', async () => {
    await server.halt()
    const full = { ...env, SERVICE_MIN_FREE_BYTES: String(2 ** 52) }
    server = await startAuthServer({ dataDir: server.dataDir, env: full })
    const uri = `redirect_uri=${encodeURIComponent(app)}`
    await refused(server, `GET /v1/auth/oauth/github/authorize?${uri}`, { outcome: '507 storage_full' })
    await refused(server, 'GET /v1/auth/oauth/github/callback?state=x', { outcome: '507 storage_full' })
  })
})

it('returned every documented success', () => {
  expect(untestedSuccesses(oauthRoutes)).toEqual([])
})
