import { createPublicKey } from 'node:crypto'
import { createVerifier, TokenError } from 'fast-jwt'
import { createRemoteJWKSet, errors, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { logIn, outcomeOf, register } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { partsOf } from '../support/proof/forging.js'
import type { TestServer } from '../support/server/server.js'

/* Other services verify tokens with only the published keys (RFC 7517, RFC 8037). */

const issuer = 'https://id.example.org'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_AUTH_ISSUER: issuer, SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

const paths = ['/v1/auth/jwks', '/.well-known/jwks.json']

interface PublishedKey {
  kid: string
  x: string
}

async function publishedKeys(path: string): Promise<PublishedKey[]> {
  const { body } = await checkedCall(server, `GET ${path}`, { key: null })
  return body.keys
}

/** A verifier that shares no code with the signer: another library, with keys fetched from `path`. */
function independent(path: string): (token: string) => Promise<Record<string, unknown>> {
  const key = async ({ header }: { header: { kid?: string } }) => {
    const found = (await publishedKeys(path)).find(({ kid }) => kid === header.kid)
    if (found === undefined) throw new Error('No such key')
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: found.x }
    return createPublicKey({ format: 'jwk', key: jwk }).export({ format: 'pem', type: 'spki' }).toString()
  }
  return createVerifier({
    key,
    algorithms: ['EdDSA'],
    allowedIss: issuer,
    requiredClaims: ['exp', 'jti', 'sid'],
  })
}

describe.each(paths)('a token of the server, with the keys of %s', (path) => {
  it('is verified by jose, which fetches the keys', async () => {
    const { token, userId, email } = await register(server, `jose${paths.indexOf(path)}@example.org`)
    const keys = createRemoteJWKSet(new URL(server.url + path))
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      issuer,
      algorithms: ['EdDSA'],
      typ: 'JWT',
    })
    expect(payload).toMatchObject({ sub: userId, email, iss: issuer, app_metadata: {}, user_metadata: {} })
    expect(protectedHeader).toEqual({ alg: 'EdDSA', kid: protectedHeader.kid, typ: 'JWT' })
  })

  it('is verified by another library, and a forged one is rejected', async () => {
    const { token, userId } = await register(server, `other${paths.indexOf(path)}@example.org`)
    const verify = independent(path)
    const claims = await verify(token)
    expect(claims).toEqual(partsOf(token).claims)
    expect(claims['sub']).toBe(userId)
    const [header = '', , signature = ''] = token.split('.')
    const forged = Buffer.from(JSON.stringify({ ...claims, sub: 'usr_0' })).toString('base64url')
    await expect(verify(`${header}.${forged}.${signature}`)).rejects.toThrow(TokenError)
  })
})

describe('a rotation of the key', () => {
  it('does not affect clients with cached keys, nor earlier tokens', async () => {
    const account = await register(server, 'rotated@example.org')
    const keys = createRemoteJWKSet(new URL(`${server.url}/v1/auth/jwks`))
    const check = (token: string) => jwtVerify(token, keys, { issuer, algorithms: ['EdDSA'] })
    await check(account.token)
    const before = await publishedKeys('/v1/auth/jwks')
    const rotated = await checkedCall(server, 'POST /v1/auth/keys/rotate')
    expect(rotated.status).toBe(200)
    expect(before.map(({ kid }) => kid)).toContain(rotated.body.kid)
    const { token } = await logIn(server, account)
    expect(partsOf(token).header['kid']).toBe(rotated.body.kid)
    expect(partsOf(account.token).header['kid']).not.toBe(rotated.body.kid)
    // The keys were fetched once: the next key was published before it signed.
    expect(keys.fresh).toBe(true)
    for (const one of [account.token, token]) {
      expect((await check(one)).payload.sub).toBe(account.userId)
      expect((await independent('/v1/auth/jwks')(one))['sub']).toBe(account.userId)
      expect(await outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: one }))).toBe('200')
    }
    const kids = (await publishedKeys('/v1/auth/jwks')).map(({ kid }) => kid)
    expect(kids).toHaveLength(3)
    expect(kids).toContain(rotated.body.next_kid)
  })

  it('publishes no key of another server', async () => {
    const { token } = await register(server, 'foreign@example.org')
    const other = await startAuthServer({ env: { SERVICE_AUTH_ISSUER: issuer, SERVICE_SHARDS: '1' } })
    const keys = createRemoteJWKSet(new URL(`${other.url}/v1/auth/jwks`))
    await expect(jwtVerify(token, keys, { issuer })).rejects.toThrow(errors.JWKSNoMatchingKey)
    expect(await outcomeOf(checkedCall(other, 'GET /v1/auth/me', { key: token }))).toBe('401 invalid_token')
    await other.stop()
  })
})

it('keys are the same after a restart', async () => {
  const before = await publishedKeys('/v1/auth/jwks')
  const { dataDir } = server
  await server.halt('SIGKILL')
  server = await startAuthServer({ dataDir, env: { SERVICE_AUTH_ISSUER: issuer, SERVICE_SHARDS: '2' } })
  expect(await publishedKeys('/v1/auth/jwks')).toEqual(before)
})
