import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type JwtKey, jwtKeyOfSeed } from '../../src/auth/jwt-key.js'
import { type Account, logIn, outcomeOf, ownedAgent, register } from '../support/auth/accounts.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { issueLicense, startAuthServer } from '../support/server/auth-server.js'
import { isCaughtUp, openStream } from '../support/http/events.js'
import {
  encoded,
  macToken,
  partsOf,
  serverKey,
  signedToken,
  type TokenParts,
} from '../support/proof/forging.js'
import { metricsNow } from '../support/http/metrics.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * Auth routes and data routes accept only tokens that the server issued (docs/SECURITY.md; RFC 8725). The
 * test knows the server's master seed, so that it can sign with the key of the server.
 */

const masterSeed = '5a'.repeat(32)
const METADATA_BYTES = 4_096
/** An upper bound for the head of an answer. */
const HEAD_CHARS = 1_000

let server: TestServer
let account: Account
let good: TokenParts
let key: JwtKey
let agent = ''

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2', SERVICE_MASTER_SEED: masterSeed } })
  account = await register(server, 'ann@example.org')
  agent = await ownedAgent(server, 'notes')
  key = await serverKey(masterSeed)
  good = partsOf(account.token)
})
afterAll(() => server.stop())

/** The outcomes of a token on a route of users, on a read, on a write and on a stream. */
async function outcomesWith(token: string): Promise<string[]> {
  const body = { data: { owner: account.userId } }
  return Promise.all([
    outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: token })),
    outcomeOf(checkedCall(server, `GET /v1/agents/${agent}/head`, { key: token })),
    outcomeOf(checkedCall(server, `POST /v1/agents/${agent}/records`, { key: token, body })),
    streamOutcome(token),
  ])
}

/** The outcome of opening a stream, which is closed again. */
async function streamOutcome(token: string): Promise<string> {
  const abort = new AbortController()
  const response = await fetch(`${server.url}/v1/agents/${agent}/stream`, {
    headers: { authorization: `Bearer ${token}` },
    signal: abort.signal,
  })
  if (response.status < 400) abort.abort()
  return response.ok ? String(response.status) : `${response.status} ${(await response.json()).code}`
}

/** Expects 401 everywhere. A text that does not look like a token counts as a missing credential. */
async function expectRefused(token: string): Promise<void> {
  for (const outcome of await outcomesWith(token))
    expect(['401 invalid_token', '401 unauthorized']).toContain(outcome)
}

const flipped = (signature: string, bit: number) => {
  const bytes = Buffer.from(signature, 'base64url')
  bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
  return bytes.toString('base64url')
}

/** A token with other claims or headers, signed with the server's key. */
const resigned = (header: Record<string, unknown>, claims: Record<string, unknown> = {}) =>
  signedToken({ ...good.header, ...header }, { ...good.claims, ...claims }, key)

const without = (object: Record<string, unknown>, name: string) =>
  Object.fromEntries(Object.entries(object).filter(([one]) => one !== name))

const pem = () => key.publicKey.export({ format: 'pem', type: 'spki' }).toString()
const der = () => key.publicKey.export({ format: 'der', type: 'spki' })
const raw = () => Buffer.from(key.publicJwk.x, 'base64url')

const foreign = generateKeyPairSync('ed25519')
const foreignJwk = createPublicKey(foreign.privateKey).export({ format: 'jwk' })
const signedByOther = (header: Record<string, unknown>) =>
  signedToken({ ...good.header, ...header }, good.claims, foreign)

const dot = (...parts: string[]) => parts.join('.')

it('a token of the server is accepted, and so is the same token signed by this test', async () => {
  expect(key.kid).toBe(good.header['kid'])
  for (const token of [account.token, resigned({})]) {
    expect(await outcomesWith(token)).toEqual(['200', '200', '201', '200'])
  }
})

describe('a token', () => {
  const headers: [string, () => string][] = [
    [
      'alg is none and it has no signature',
      () => `${encoded({ ...good.header, alg: 'none' })}.${encoded(good.claims)}.`,
    ],
    [
      'alg is none with a valid signature',
      () => `${encoded({ ...good.header, alg: 'none' })}.${encoded(good.claims)}.${good.signature}`,
    ],
    ['alg is NONE', () => resigned({ alg: 'NONE' })],
    ['alg is an empty string', () => resigned({ alg: '' })],
    ['alg is missing', () => signedToken(without(good.header, 'alg'), good.claims, key)],
    ['alg is Ed25519, another name for the same algorithm', () => resigned({ alg: 'Ed25519' })],
    ['alg is ES256', () => resigned({ alg: 'ES256' })],
    ['alg is eddsa', () => resigned({ alg: 'eddsa' })],
    ['it contains the key that verifies it', () => signedByOther({ jwk: foreignJwk })],
    [
      'it contains that key and no kid',
      () => signedToken({ ...without(good.header, 'kid'), jwk: foreignJwk }, good.claims, foreign),
    ],
    [
      'it contains a URL of the key',
      () => signedByOther({ jku: `${server.url}/keys`, x5u: `${server.url}/x` }),
    ],
    ['another key signed it with the kid of the server', () => signedByOther({})],
    ['its kid is unknown', () => resigned({ kid: 'x'.repeat(43) })],
    ['its kid is a path', () => resigned({ kid: '../../../../dev/null' })],
    ['its kid is not a string', () => resigned({ kid: [key.kid] })],
    ['its kid is missing', () => signedToken(without(good.header, 'kid'), good.claims, key)],
    ['its typ is missing', () => signedToken(without(good.header, 'typ'), good.claims, key)],
    ['its typ is that of a license', () => resigned({ typ: 'license+jwt' })],
    ['its typ is at+jwt', () => resigned({ typ: 'at+jwt' })],
    ['it has an unknown critical header', () => resigned({ crit: ['policy'], policy: 'x' })],
    ['crit is empty', () => resigned({ crit: [] })],
    ['its header declares an unencoded payload', () => resigned({ b64: false, crit: ['b64'] })],
  ]

  it.each(headers)('is refused everywhere when %s', async (_why, make) => {
    await expectRefused(make())
  })

  it.each(['sha256', 'sha384', 'sha512'] as const)(
    'is refused everywhere when it is an HMAC by %s with the public key in any form',
    async (hash) => {
      const { keys } = (await checkedCall(server, 'GET /v1/auth/jwks', { key: null })).body
      const secrets: (Buffer | string)[] = [
        raw(),
        key.publicJwk.x,
        raw().toString('hex'),
        JSON.stringify(key.publicJwk),
        JSON.stringify(keys[0]),
        JSON.stringify({ keys }),
        pem(),
        pem().trim(),
        der(),
        '',
      ]
      for (const secret of secrets) {
        await expectRefused(macToken(good, hash, secret))
        await expectRefused(macToken({ ...good, header: { ...good.header, kid: undefined } }, hash, secret))
      }
    },
  )

  it.each(['sub', 'email', 'app_metadata', 'user_metadata', 'iat', 'exp', 'jti', 'iss', 'sid', 'amr'])(
    'is refused everywhere when it lacks %s',
    async (claim) => {
      await expectRefused(signedToken(good.header, without(good.claims, claim), key))
    },
  )

  const claims: [string, Record<string, unknown>][] = [
    ['exp is a string', { exp: '9999999999' }],
    ['exp is null', { exp: null }],
    ['exp is not a finite number', { exp: '1e999' }],
    ['it is not valid yet', { nbf: 9_999_999_999 }],
    ['nbf is a string', { nbf: '0' }],
    ['another issuer is named', { iss: 'elsewhere' }],
    ['an organism issued it', { iss: 'strandfast/v1/organisms/acme' }],
    ['the issuer is a list', { iss: ['strandfast'] }],
    ['sub is an object', { sub: { toString: 'x' } }],
    ['app_metadata is a list', { app_metadata: [] }],
  ]
  it.each(claims)('is refused everywhere when %s', async (_why, change) => {
    await expectRefused(resigned({}, change))
  })

  it('is refused everywhere when any bit of its signature is changed', async () => {
    const [header = '', claims = ''] = account.token.split('.')
    for (const bit of [0, 7, 100, 255, 256, 400, 503, 511]) {
      await expectRefused(dot(header, claims, flipped(good.signature, bit)))
    }
  })

  it('is refused everywhere when one of its parts is from another valid token', async () => {
    const other = await register(server, `bob-${Date.now()}@example.org`)
    const [header = '', claims = ''] = account.token.split('.')
    const [, otherClaims = '', otherSignature = ''] = other.token.split('.')
    await expectRefused(dot(header, otherClaims, good.signature))
    await expectRefused(dot(header, claims, otherSignature))
  })

  it('is refused everywhere when it is truncated, doubled, or has more parts', async () => {
    const { token } = account
    const [header = '', claims = '', signature = ''] = token.split('.')
    const malformed = [
      dot(header, claims),
      dot(header, claims, ''),
      dot('', claims, signature),
      dot(header, '', signature),
      dot(header, claims, signature.slice(0, -2)),
      dot(header, claims, signature, ''),
      dot(header, claims, signature, signature),
      dot(header, claims, signature + signature),
      dot(header + header, claims, signature),
      `${token}.`,
      `.${token}`,
      `${token},${token}`,
      `"${token}"`,
    ]
    for (const one of malformed) await expectRefused(one)
  })

  it('is refused everywhere when its base64url is not canonical', async () => {
    const [header = '', claims = '', signature = ''] = account.token.split('.')
    const malformed = [
      dot(header, claims, `${signature}==`),
      dot(`${header}=`, claims, signature),
      dot(header, claims, `${signature.slice(0, 40)}%0A${signature.slice(40)}`),
      dot(header, `${claims.slice(0, 8)}\t${claims.slice(8)}`, signature),
      dot(header, claims, Buffer.from(signature, 'base64url').toString('base64')),
      dot(header, claims, `${signature}A`),
    ]
    for (const one of malformed) await expectRefused(one)
  })

  it('is refused everywhere when it is a license', async () => {
    const license = await issueLicense(server.dataDir)
    await expectRefused(license)
    const authority = await jwtKeyOfSeed(Buffer.alloc(32, 9))
    await expectRefused(signedToken({ ...good.header, typ: 'JWT' }, partsOf(license).claims, authority))
  })

  it('is refused everywhere when its claims are not a JSON object', async () => {
    const { claims } = good
    const twice = JSON.stringify(claims).replace('{', '{"sub":"usr_0",')
    for (const text of ['[]', 'null', '"x"', '{', JSON.stringify([claims]), '\ufeff{}']) {
      await expectRefused(signedToken(good.header, text, key))
    }
    // With a duplicate claim, which the server never signs, the last one counts, as usual in JSON.
    const { body } = await checkedCall(server, 'GET /v1/auth/me', {
      key: signedToken(good.header, twice, key),
    })
    expect(body.user_id).toBe(account.userId)
  })

  it('is refused everywhere when it is a refresh token, or is not in the Authorization header', async () => {
    await expectRefused(account.refreshToken)
    const places = [
      `GET /v1/agents/${agent}/head?access_token=${account.token}`,
      `GET /v1/auth/me?token=${account.token}`,
      `GET /v1/agents/${agent}/stream?ticket=${account.token}`,
    ]
    for (const place of places) expect((await call(server, place, { key: null })).status).toBe(401)
    const cookie = { cookie: `token=${account.token}; access_token=${account.token}` }
    expect((await call(server, 'GET /v1/auth/me', { key: null, headers: cookie })).status).toBe(401)
  })
})

describe('another spelling of the signature', () => {
  it('is refused once the token is revoked', async () => {
    const { token } = await logIn(server, account)
    // 86 characters encode four bits more than a signature has.
    const last = token.at(-1) ?? ''
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const spelled = token.slice(0, -1) + (alphabet[alphabet.indexOf(last) ^ 1] ?? '')
    expect(spelled).not.toBe(token)
    await outcomesWith(spelled)
    expect((await checkedCall(server, 'POST /v1/auth/revoke', { key: token })).status).toBe(200)
    for (const outcome of await outcomesWith(spelled)) expect(outcome).toMatch(/^401 /)
  })
})

describe('keys', () => {
  it('are not accepted as users, nor tokens of users as keys', async () => {
    expect(await outcomeOf(checkedCall(server, 'GET /v1/auth/me'))).toBe('401 unauthorized')
    const routes = [
      'GET /v1/auth/users',
      'POST /v1/auth/keys/rotate',
      'GET /v1/admin/api-keys',
      'GET /v1/agents',
    ]
    for (const route of routes) {
      const outcome = await outcomeOf(checkedCall(server, route, { key: account.token }))
      expect(outcome, route).toMatch(/^40[13] /)
    }
  })
})

describe('the metadata of a user', () => {
  it('works with 4,096 bytes on every kind of route', async () => {
    const big = await register(server, 'big@example.org')
    const frame = JSON.stringify({ text: '' }).length
    // The other object is {} of two bytes.
    const metadata = { text: 'x'.repeat(METADATA_BYTES - frame - 2) }
    const set = await checkedCall(server, `PATCH /v1/auth/users/${big.email}/app-metadata`, {
      body: { metadata },
    })
    expect(set.status).toBe(200)
    const over = { key: big.token, body: { metadata: { n: 1 } } }
    expect(await outcomeOf(checkedCall(server, 'PATCH /v1/auth/me/user-metadata', over))).toBe(
      '422 metadata_too_large',
    )
    const { token } = await logIn(server, big)
    expect(token.length).toBeGreaterThan(5_400)
    const data = { owner: big.userId }
    const me = await checkedCall(server, 'GET /v1/auth/me', { key: token })
    expect(me.body.app_metadata).toEqual(metadata)
    const stream = await openStream(server, `/v1/agents/${agent}/stream`, { key: token })
    await stream.until(isCaughtUp)
    const written = await checkedCall(server, `POST /v1/agents/${agent}/records`, {
      key: token,
      body: { data },
    })
    expect(written.status).toBe(201)
    const ingested = await checkedCall(server, `POST /v1/ingest/${agent}`, {
      key: token,
      raw: `${JSON.stringify(data)}\n`.repeat(5_000),
      headers: { 'content-type': 'application/x-ndjson' },
    })
    expect([ingested.status, ingested.body.accepted]).toEqual([200, 5_000])
    await stream.until((events) => events.filter(({ event }) => event === 'record').length > 5_000)
    stream.close()
    const exported = await call(server, `GET /v1/strand/export?agent=${agent}`, { key: token })
    expect(exported.status).toBe(200)
  })

  it('is refused everywhere under the name __proto__', async () => {
    const texts = [
      '{"metadata":{"__proto__":{"role":"admin"}}}',
      '{"metadata":{"deep":[{"__proto__":1}]}}',
      '{"metadata":{"\\u005f_proto__":{}}}',
      '{"__proto__":{"metadata":{}},"metadata":{}}',
    ]
    for (const text of texts) {
      const own = checkedCall(server, 'PATCH /v1/auth/me/user-metadata', { key: account.token, raw: text })
      expect(await outcomeOf(own), text).toBe('400 validation_failed')
      const app = checkedCall(server, `PATCH /v1/auth/users/${account.email}/app-metadata`, { raw: text })
      expect(await outcomeOf(app), text).toBe('400 validation_failed')
    }
    const { body } = await checkedCall(server, 'GET /v1/auth/me', { key: account.token })
    expect([body.app_metadata, body.user_metadata]).toEqual([{}, {}])
  })

  it('does not match policies by the names of inherited properties', async () => {
    const guarded = await newAgent(server, 'guarded')
    const names = ['role', 'constructor', 'toString', '__proto__', 'hasOwnProperty']
    const policies = names
      .filter((name) => name !== '__proto__')
      .map((name) => ({
        actions: ['read', 'write'],
        conditions: [{ field: 'role', op: 'eq', value: `$jwt.app_metadata.${name}` }],
      }))
    const put = await checkedCall(server, `PUT /v1/agents/${guarded}/policies`, { body: { policies } })
    expect(put.status).toBe(200)
    const record = { data: { role: 'admin' } }
    const written = await checkedCall(server, `POST /v1/agents/${guarded}/records`, { body: record })
    expect(written.status).toBe(201)
    // Signed with the server's key, as a faulty version could have done.
    const claims = JSON.stringify(good.claims).replace(
      '"app_metadata":{}',
      '"app_metadata":{"__proto__":{"role":"admin"}}',
    )
    expect(claims).toContain('__proto__')
    const token = signedToken(good.header, claims, key)
    for (const one of [token, account.token]) {
      const path = `/v1/agents/${guarded}/records/${written.body.record_id}`
      expect(await outcomeOf(checkedCall(server, `GET ${path}`, { key: one }))).toMatch(/^(401|403|404) /)
      const write = checkedCall(server, `POST /v1/agents/${guarded}/records`, { key: one, body: record })
      expect(await outcomeOf(write)).toMatch(/^(401|403) /)
    }
    const admin = resigned({}, { app_metadata: { role: 'admin' } })
    const path = `/v1/agents/${guarded}/records/${written.body.record_id}`
    expect(await outcomeOf(checkedCall(server, `GET ${path}`, { key: admin }))).toBe('200')
  })
})

describe('a token that the server has not seen before', () => {
  /** A request without a body, as raw text. */
  const get = (path: string, token?: string) =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\n${token === undefined ? '' : `Authorization: Bearer ${token}\r\n`}\r\n`

  /** Whether an answer is complete; a chunked one may arrive in several parts. */
  const isComplete = (text: string) =>
    text.endsWith(/^transfer-encoding: chunked\r$/im.test(text.slice(0, HEAD_CHARS)) ? '\r\n0\r\n\r\n' : '}')

  // Regression test: after the answer, the connection did not read any more until it timed out.
  it.each(['/v1/auth/me', '/v1/agents/notes/head', '/v1/strand/export?agent=notes'])(
    'leaves the connection open for the next request after %s',
    async (path) => {
      const { token } = await logIn(server, account)
      const connection = await RawConnection.open(server)
      connection.write(get(path, token))
      await connection.until(({ text }) => isComplete(text))
      connection.write(get('/healthz'))
      const { statuses } = await connection.until((answer) => answer.statuses.length === 2)
      expect(statuses).toEqual([200, 200])
      connection.destroy()
    },
  )

  it('opens a stream, and the server notices when the client closes it', async () => {
    const { token } = await logIn(server, account)
    const connection = await RawConnection.open(server)
    connection.write(get('/v1/agents/notes/stream', token))
    await connection.until(({ text }) => text.includes('caught_up'))
    const open = await openStreams()
    connection.destroy()
    while ((await openStreams()) >= open) await checkedCall(server, 'GET /healthz')
  })

  async function openStreams(): Promise<number> {
    const text = await metricsNow(() => call(server, 'GET /metrics'))
    return Number(/^strandfast_streams_open (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
  }
})

it('the server logs no warning or error', () => {
  expect(server.stderr()).toBe('')
})
