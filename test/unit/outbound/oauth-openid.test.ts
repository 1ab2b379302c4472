import { OAuth2Server } from 'oauth2-mock-server'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { OauthProvider } from '../../../src/auth/oauth.js'
import { boundedFetch } from '../../../src/outbound/oauth-providers.js'
import { openIdProvider } from '../../../src/outbound/oauth-openid.js'

let server: OAuth2Server
/** What the provider signs with: made once, as making one takes long. */
let key: Awaited<ReturnType<OAuth2Server['issuer']['keys']['generate']>>
let provider: OauthProvider
let nowMs: number
/** What is answered in place of the provider. */
let forged: (path: string) => string | undefined
/** Paths asked for, in order. */
let asked: string[]

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
  asked = []
  forged = () => undefined
  const bounded = boundedFetch({ requestMs: 5_000 })
  provider = openIdProvider({
    issuerUrl: server.issuer.url,
    clientId: 'strandfast',
    clientSecret: 'secret',
    clock: () => nowMs,
    fetch: (url, options) => {
      const { pathname } = new URL(url)
      asked.push(pathname)
      const answer = forged(pathname)
      if (answer === undefined) return bounded(url, options)
      return Promise.resolve(new Response(answer, { headers: { 'content-type': 'application/json' } }))
    },
  })
  onToken((claims) => Object.assign(claims, { email: 'ada@example.org', email_verified: true }))
})

afterEach(() => server.stop())

/** Changes what ID tokens say before they are signed. */
function onToken(change: (claims: Record<string, unknown>, header: Record<string, unknown>) => void): void {
  server.service.on('beforeTokenSigning', ({ payload, header }) => change(payload, header))
}

/** Changes the answer of the token endpoint. */
function onAnswer(change: (answer: { statusCode: number; body: Record<string, unknown> }) => void): void {
  server.service.on('beforeResponse', change)
}

/** What the browser comes back with from the provider. */
async function comeBack(start = started): Promise<URLSearchParams> {
  const url = await provider.authorizationUrl(start)
  if ('error' in url) throw new Error(`Expected an address, got ${url.reason}`)
  const { headers } = await fetch(url, { redirect: 'manual' })
  return new URL(headers.get('location') ?? '').searchParams
}

async function identify(change: (query: URLSearchParams) => void = () => undefined) {
  const query = await comeBack()
  change(query)
  return provider.identify({ ...started, query })
}

const fault = (error: string) => ({ error, reason: expect.stringMatching(/./) })

describe('an OpenID provider', () => {
  it('may have a clock that is some minutes ahead, and may name this client as the one that asked', async () => {
    onToken((claims) => {
      claims['iat'] = Math.floor(Date.now() / 1_000) + 240
      claims['azp'] = 'strandfast'
    })
    expect(await identify()).toEqual({ subject: 'johndoe', verifiedEmail: 'ada@example.org' })
  })

  it('says who came back, and is asked what it is but once an hour', async () => {
    const identity = { subject: 'johndoe', verifiedEmail: 'ada@example.org' }
    for (const count of [1, 1, 2]) {
      expect(await identify()).toEqual(identity)
      expect(asked.filter((path) => path.endsWith('/openid-configuration'))).toHaveLength(count)
      nowMs += count * 3_000_000
    }
  })

  const lies: [what: string, change: (claims: Record<string, unknown>) => void][] = [
    ['of another issuer', (claims) => (claims['iss'] = 'https://evil.example.net')],
    ['for another client', (claims) => (claims['aud'] = 'somebody else')],
    [
      'for others as well, this client not being the one that asked',
      (claims) => {
        claims['aud'] = ['strandfast', 'other']
        claims['azp'] = 'other'
      },
    ],
    ['for this client, another being the one that asked', (claims) => (claims['azp'] = 'other')],
    ['for this client, asked for by nobody', (claims) => (claims['azp'] = '')],
    ['issued hours ahead', (claims) => (claims['iat'] = Math.floor(Date.now() / 1_000) + 7_200)],
    ['of another sign-in', (claims) => (claims['nonce'] = 'x'.repeat(43))],
    ['of no sign-in', (claims) => delete claims['nonce']],
    ['that has expired', (claims) => (claims['exp'] = Math.floor(Date.now() / 1_000) - 60)],
    ['without an end', (claims) => delete claims['exp']],
    ['from the future', (claims) => (claims['nbf'] = Math.floor(Date.now() / 1_000) + 3_600)],
    ['of nobody', (claims) => delete claims['sub']],
    ['of a subject that is none', (claims) => (claims['sub'] = 'a\u0000b')],
    ['of a subject that is too long', (claims) => (claims['sub'] = 'x'.repeat(256))],
  ]

  it.each(lies)('is not believed with an ID token %s', async (_what, change) => {
    onToken(change)
    expect(await identify()).toEqual(fault('server_error'))
  })

  it.each([
    ['that were changed', (token: string) => token.replace(/\.[^.]+\./, `.${claimsOf(token, 'eve')}.`)],
    ['that nobody signed', (token: string) => `${encoded({ alg: 'none' })}.${claimsOf(token, 'eve')}.`],
    ['signed with the public key', (token: string) => token.replace(/^[^.]+/, encoded({ alg: 'HS256' }))],
    ['that are none', () => 'x'],
  ])('is not believed with claims %s', async (_what, change) => {
    onAnswer(({ body }) => (body['id_token'] = change(String(body['id_token']))))
    expect(await identify()).toEqual(fault('server_error'))
  })

  it('vouches for an e-mail by a text as well, as Google did', async () => {
    onToken((claims) => (claims['email_verified'] = 'true'))
    expect(await identify()).toEqual({ subject: 'johndoe', verifiedEmail: 'ada@example.org' })
  })

  it.each([
    ['false', false],
    ['missing', undefined],
    ['a text of false', 'false'],
    ['a number', 1],
  ])('vouches for no e-mail while its word on that is %s', async (_what, isVerified) => {
    onToken((claims) => (claims['email_verified'] = isVerified))
    expect(await identify()).toEqual({ subject: 'johndoe' })
  })

  it('may keep the e-mail out of the ID token and tell it when asked, but of the same user only', async () => {
    onToken((claims) => delete claims['email'])
    let subject = 'johndoe'
    server.service.on('beforeUserinfo', (answer: { body: unknown }) => {
      answer.body = { sub: subject, email: 'ada@example.org', email_verified: true }
    })
    expect(await identify()).toEqual({ subject: 'johndoe', verifiedEmail: 'ada@example.org' })
    subject = 'somebody else'
    expect(await identify()).toEqual(fault('server_error'))
  })

  it('has to answer for this sign-in: state, issuer and code', async () => {
    const changes: ((query: URLSearchParams) => void)[] = [
      (query) => query.set('state', 'other'),
      (query) => query.set('iss', 'https://evil.example.net'),
      (query) => query.delete('code'),
      (query) => query.append('code', 'two'),
      (query) => query.set('response', 'a.b.c'),
    ]
    for (const change of changes) expect(await identify(change)).toEqual(fault('server_error'))
  })

  it('leaves nothing of what it answers in the log, be it JSON or not', async () => {
    forged = (path) => (path.endsWith('/token') ? '{"email":ada@example.org' : undefined)
    const found = await identify()
    expect(found).toEqual(fault('server_error'))
    expect(JSON.stringify(found)).not.toContain('ada')
  })

  it('gives no token for a verifier that belongs to another sign-in', async () => {
    const query = await comeBack()
    const codeVerifier = Buffer.alloc(32, 9).toString('base64url')
    expect(await provider.identify({ ...started, codeVerifier, query })).toHaveProperty('error')
  })

  it.each([
    ['access_denied', 'access_denied'],
    ['temporarily_unavailable', 'temporarily_unavailable'],
    ['invalid_scope', 'server_error'],
    ['<script>', 'server_error'],
  ])('has its answer %s passed on as %s', async (answered, told) => {
    const query = new URLSearchParams({ state: started.state, error: answered })
    expect(await provider.identify({ ...started, query })).toEqual(fault(told))
  })

  it.each([
    [500, { error: 'server_error' }, 'temporarily_unavailable'],
    [503, '', 'temporarily_unavailable'],
    [400, { error: 'invalid_grant' }, 'server_error'],
    [404, '', 'server_error'],
    [200, { token_type: 'Bearer' }, 'server_error'],
    [200, { access_token: 'x', token_type: 'Bearer' }, 'server_error'],
    [200, { access_token: 'x', token_type: 'Bearer', padding: 'x'.repeat(300_000) }, 'server_error'],
  ])('has the answer %i %j of its token endpoint passed on as %s', async (status, body, told) => {
    onAnswer((answer) => Object.assign(answer, { statusCode: status, body }))
    const found = await identify()
    expect(found).toEqual(fault(told))
    expect(JSON.stringify(found)).not.toContain('secret')
  })

  it('is shown the secret in the other way when it does not know the client in the first', async () => {
    const ways: (string | undefined)[] = []
    server.service.on(
      'beforeResponse',
      (answer: object, { headers }: { headers: Record<string, string> }) => {
        ways.push(headers['authorization'])
        const isBasic = headers['authorization'] !== undefined
        if (isBasic) Object.assign(answer, { statusCode: 401, body: { error: 'invalid_client' } })
      },
    )
    // The mock forgets a code when it is used, whoever used it.
    expect(await identify()).toHaveProperty('error')
    expect(await identify()).toEqual({ subject: 'johndoe', verifiedEmail: 'ada@example.org' })
    expect(ways.map((way) => way?.split(' ')[0])).toEqual(['Basic', undefined])
  })

  it('is called again by the next sign-in when it was away at first', async () => {
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

  it('is not a provider when it says that it is another', async () => {
    server.issuer.url = 'https://evil.example.net'
    expect(await provider.authorizationUrl(started)).toEqual(fault('server_error'))
  })
})

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** The claims of a token, of another subject. */
function claimsOf(token: string, subject: string): string {
  const claims: object = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return encoded({ ...claims, sub: subject })
}
