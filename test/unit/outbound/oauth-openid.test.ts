import { OAuth2Server } from 'oauth2-mock-server'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { OauthProvider } from '../../../src/auth/oauth.js'
import { readConfig } from '../../../src/settings/config.js'
import { boundedFetch } from '../../../src/outbound/oauth-providers.js'
import { openIdProvider } from '../../../src/outbound/oauth-openid.js'

let server: OAuth2Server
/** The signing key of the provider, generated once because it takes long. */
let key: Awaited<ReturnType<OAuth2Server['issuer']['keys']['generate']>>
let provider: OauthProvider
let nowMs: number
/** Forged answers instead of those of the provider. */
let forged: (path: string) => string | undefined
/** Requested paths, in order. */
let requested: string[]

const callbackUrl = 'http://127.0.0.1:8787/v1/auth/oauth/google/callback'
const started = {
  state: Buffer.alloc(32, 1).toString('base64url'),
  nonce: Buffer.alloc(32, 2).toString('base64url'),
  codeVerifier: Buffer.alloc(32, 3).toString('base64url'),
  callbackUrl,
}

beforeAll(async () => {
  key = await new OAuth2Server().issuer.keys.generate('RS256')
})

beforeEach(async () => {
  server = new OAuth2Server()
  await server.issuer.keys.add({ ...key })
  await server.start(0, '127.0.0.1')
  server.issuer.url = `http://127.0.0.1:${server.address().port}`
  nowMs = Date.now()
  requested = []
  forged = () => undefined
  const bounded = boundedFetch({ requestMs: 5_000 })
  provider = openIdProvider({
    issuerUrl: server.issuer.url,
    clientId: 'strandfast',
    clientSecret: 'secret',
    clock: () => nowMs,
    fetch: (url, options) => {
      const { pathname } = new URL(url)
      requested.push(pathname)
      const answer = forged(pathname)
      if (answer === undefined) return bounded(url, options)
      return Promise.resolve(new Response(answer, { headers: { 'content-type': 'application/json' } }))
    },
  })
  onToken((claims) => Object.assign(claims, { email: 'ada@example.org', email_verified: true }))
})

afterEach(() => server.stop())

/** Changes ID tokens before they are signed. */
function onToken(change: (claims: Record<string, unknown>, header: Record<string, unknown>) => void): void {
  server.service.on('beforeTokenSigning', ({ payload, header }) => change(payload, header))
}

/** Changes the answer of the token endpoint. */
function onAnswer(change: (answer: { statusCode: number; body: Record<string, unknown> }) => void): void {
  server.service.on('beforeResponse', change)
}

/** The parameters with which the provider redirects the browser back. */
async function signIn(start = started, served = (url: string) => url): Promise<URLSearchParams> {
  const url = await provider.authorizationUrl(start)
  if ('error' in url) throw new Error(`Expected an address, got ${url.reason}`)
  const { headers } = await fetch(served(url.href), { redirect: 'manual' })
  return new URL(headers.get('location') ?? '').searchParams
}

async function identify(change: (query: URLSearchParams) => void = () => undefined) {
  const query = await signIn()
  change(query)
  return provider.identify({ ...started, query })
}

const fault = (error: string) => ({ error, reason: expect.stringMatching(/./) })

describe('an OpenID provider', () => {
  it.each([
    ['iat', 240],
    ['nbf', 240],
    ['exp', -240],
  ])('may have a clock that differs by some minutes: %s', async (claim, differs) => {
    onToken((claims) => (claims[claim] = Math.floor(Date.now() / 1_000) + differs))
    expect(await identify()).toEqual({ subject: 'johndoe', verifiedEmail: 'ada@example.org' })
  })

  it('may set this client as authorised party', async () => {
    onToken((claims) => (claims['azp'] = 'strandfast'))
    expect(await identify()).toEqual({ subject: 'johndoe', verifiedEmail: 'ada@example.org' })
  })

  it.each(['/realms/acme', '/application/o/acme/', '/a/b/'])(
    'may have an issuer with the path %s, exactly as it is set',
    async (path) => {
      const issuer = server.issuer.url + path
      // The mock server serves no paths below its origin.
      const served = (url: string) => url.replace(path.replace(/\/?$/, '/'), '/')
      const bounded = boundedFetch({ requestMs: 5_000 })
      const setTo = (issuerUrl: string) => {
        const env = {
          SERVICE_OAUTH_GOOGLE_CLIENT_ID: 'strandfast',
          SERVICE_OAUTH_GOOGLE_CLIENT_SECRET: 'secret',
          SERVICE_OAUTH_GOOGLE_ISSUER_URL: issuerUrl,
        }
        const reading = readConfig(env)
        const google = reading.ok ? reading.config.oauth?.google : undefined
        if (google === undefined) throw new Error('Expected a provider')
        provider = openIdProvider({
          ...google,
          clock: () => nowMs,
          fetch: (url, options) => bounded(served(url), options),
        })
      }
      server.issuer.url = issuer
      setTo(issuer)
      const query = await signIn(started, served)
      expect(query.get('iss') ?? issuer).toBe(issuer)
      expect(await provider.identify({ ...started, query })).toMatchObject({ subject: 'johndoe' })
      setTo(path.endsWith('/') ? issuer.slice(0, -1) : `${issuer}/`)
      expect(await provider.authorizationUrl(started)).toEqual({
        error: 'server_error',
        reason: expect.stringContaining('issuer'),
      })
    },
  )

  it('identifies the user, and its discovery document is fetched once an hour', async () => {
    const identity = { subject: 'johndoe', verifiedEmail: 'ada@example.org' }
    for (const count of [1, 1, 2]) {
      expect(await identify()).toEqual(identity)
      expect(requested.filter((path) => path.endsWith('/openid-configuration'))).toHaveLength(count)
      nowMs += count * 3_000_000
    }
  })

  const forgeries: [name: string, change: (claims: Record<string, unknown>) => void][] = [
    ['of another issuer', (claims) => (claims['iss'] = 'https://evil.example.net')],
    ['for another client', (claims) => (claims['aud'] = 'other')],
    [
      'for several clients, with another authorised party',
      (claims) => {
        claims['aud'] = ['strandfast', 'other']
        claims['azp'] = 'other'
      },
    ],
    ['with another authorised party', (claims) => (claims['azp'] = 'other')],
    ['with an empty authorised party', (claims) => (claims['azp'] = '')],
    ['issued too far ahead', (claims) => (claims['iat'] = Math.floor(Date.now() / 1_000) + 360)],
    ['of another sign-in', (claims) => (claims['nonce'] = 'x'.repeat(43))],
    ['without a nonce', (claims) => delete claims['nonce']],
    ['that has expired', (claims) => (claims['exp'] = Math.floor(Date.now() / 1_000) - 360)],
    ['without an expiry', (claims) => delete claims['exp']],
    ['from the future', (claims) => (claims['nbf'] = Math.floor(Date.now() / 1_000) + 360)],
    ['without a subject', (claims) => delete claims['sub']],
    ['with an invalid subject', (claims) => (claims['sub'] = 'a\u0000b')],
    ['with a subject that is too long', (claims) => (claims['sub'] = 'x'.repeat(256))],
  ]

  it.each(forgeries)('is refused with an ID token %s', async (_name, change) => {
    onToken(change)
    expect(await identify()).toEqual(fault('server_error'))
  })

  it.each([
    ['that were changed', (token: string) => token.replace(/\.[^.]+\./, `.${claimsOf(token, 'eve')}.`)],
    ['without a signature', (token: string) => `${encoded({ alg: 'none' })}.${claimsOf(token, 'eve')}.`],
    ['signed with the public key', (token: string) => token.replace(/^[^.]+/, encoded({ alg: 'HS256' }))],
    ['that are malformed', () => 'x'],
  ])('is refused with claims %s', async (_name, change) => {
    onAnswer(({ body }) => (body['id_token'] = change(String(body['id_token']))))
    expect(await identify()).toEqual(fault('server_error'))
  })

  it('may vouch for an e-mail with a text, as Google did', async () => {
    onToken((claims) => (claims['email_verified'] = 'true'))
    expect(await identify()).toEqual({ subject: 'johndoe', verifiedEmail: 'ada@example.org' })
  })

  it.each([
    ['false', false],
    ['missing', undefined],
    ['a text of false', 'false'],
    ['a number', 1],
  ])('does not vouch for an e-mail if email_verified is %s', async (_name, isVerified) => {
    onToken((claims) => (claims['email_verified'] = isVerified))
    expect(await identify()).toEqual({ subject: 'johndoe' })
  })

  it('may return the e-mail from the userinfo endpoint, for the same user only', async () => {
    onToken((claims) => delete claims['email'])
    let subject = 'johndoe'
    server.service.on('beforeUserinfo', (answer: { body: unknown }) => {
      answer.body = { sub: subject, email: 'ada@example.org', email_verified: true }
    })
    expect(await identify()).toEqual({ subject: 'johndoe', verifiedEmail: 'ada@example.org' })
    subject = 'other'
    expect(await identify()).toEqual(fault('server_error'))
  })

  it('must return the state, issuer and code of this sign-in', async () => {
    const changes: ((query: URLSearchParams) => void)[] = [
      (query) => query.set('state', 'other'),
      (query) => query.set('iss', 'https://evil.example.net'),
      (query) => query.delete('code'),
      (query) => query.append('code', 'two'),
      (query) => query.set('response', 'a.b.c'),
    ]
    for (const change of changes) expect(await identify(change)).toEqual(fault('server_error'))
  })

  it('does not appear in the log with its answer, even if that is malformed', async () => {
    forged = (path) => (path.endsWith('/token') ? '{"email":ada@example.org' : undefined)
    const found = await identify()
    expect(found).toEqual(fault('server_error'))
    expect(JSON.stringify(found)).not.toContain('ada')
  })

  it('refuses the verifier of another sign-in', async () => {
    const query = await signIn()
    const codeVerifier = Buffer.alloc(32, 9).toString('base64url')
    expect(await provider.identify({ ...started, codeVerifier, query })).toHaveProperty('error')
  })

  it.each([
    ['access_denied', 'access_denied'],
    ['temporarily_unavailable', 'temporarily_unavailable'],
    ['invalid_scope', 'server_error'],
    ['<script>', 'server_error'],
  ])('causes the fault %s → %s by its error', async (error, expected) => {
    const query = new URLSearchParams({ state: started.state, error })
    expect(await provider.identify({ ...started, query })).toEqual(fault(expected))
  })

  it.each([
    [500, { error: 'server_error' }, 'temporarily_unavailable'],
    [503, '', 'temporarily_unavailable'],
    [400, { error: 'invalid_grant' }, 'server_error'],
    [404, '', 'server_error'],
    [200, { token_type: 'Bearer' }, 'server_error'],
    [200, { access_token: 'x', token_type: 'Bearer' }, 'server_error'],
    [200, { access_token: 'x', token_type: 'Bearer', padding: 'x'.repeat(300_000) }, 'server_error'],
  ])('causes a fault by the answer %i %j of its token endpoint: %s', async (status, body, expected) => {
    onAnswer((answer) => Object.assign(answer, { statusCode: status, body }))
    const found = await identify()
    expect(found).toEqual(fault(expected))
    expect(JSON.stringify(found)).not.toContain('secret')
  })

  it('receives the secret by the other method if it refuses the first', async () => {
    const headersSent: (string | undefined)[] = []
    server.service.on(
      'beforeResponse',
      (answer: object, { headers }: { headers: Record<string, string> }) => {
        headersSent.push(headers['authorization'])
        const isBasic = headers['authorization'] !== undefined
        if (isBasic) Object.assign(answer, { statusCode: 401, body: { error: 'invalid_client' } })
      },
    )
    // The mock server removes a code at its first use, even if that fails.
    expect(await identify()).toHaveProperty('error')
    expect(await identify()).toEqual({ subject: 'johndoe', verifiedEmail: 'ada@example.org' })
    expect(headersSent.map((header) => header?.split(' ')[0])).toEqual(['Basic', undefined])
  })

  it('is called again by the next sign-in after it was unreachable', async () => {
    const { port } = server.address()
    await server.stop()
    expect(await provider.authorizationUrl(started)).toEqual(fault('temporarily_unavailable'))
    expect(await provider.identify({ ...started, query: new URLSearchParams() })).toEqual(
      fault('temporarily_unavailable'),
    )
    await server.start(port, '127.0.0.1')
    server.issuer.url = `http://127.0.0.1:${port}`
    expect(await provider.authorizationUrl(started)).toBeInstanceOf(URL)
  })

  it('is refused if its discovery document has another issuer', async () => {
    server.issuer.url = 'https://evil.example.net'
    expect(await provider.authorizationUrl(started)).toEqual(fault('server_error'))
  })
})

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** The claims of a token with another subject. */
function claimsOf(token: string, subject: string): string {
  const claims: object = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return encoded({ ...claims, sub: subject })
}
