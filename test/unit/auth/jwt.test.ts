// @run on the built program
import { createHmac, verify } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT, createRemoteJWKSet, exportSPKI, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type JwtKey, jwtKey } from '../../../src/auth/jwt-key.js'
import { type TokenClaims, mintToken, verifyToken } from '../../../src/auth/jwt.js'

const agentSeed = Buffer.alloc(32, 1)
const nowMs = 1_800_000_000_500
const iat = 1_800_000_000
const expected = { issuer: 'https://auth.example', nowMs }
const invalid = { ok: false, reason: 'invalid' }

const claims: TokenClaims = {
  sub: 'usr_1',
  email: 'a@b.c',
  app_metadata: { role: 'admin' },
  user_metadata: { name: 'Ada' },
  iat,
  exp: iat + 3_600,
  jti: 'jti-1',
  iss: 'https://auth.example',
  sid: 'ab'.repeat(16),
  amr: ['pwd'],
}

let key: JwtKey
let next: JwtKey
let foreign: JwtKey
beforeAll(async () => {
  key = await jwtKey(agentSeed, '', 0)
  next = await jwtKey(agentSeed, '', 1)
  foreign = await jwtKey(agentSeed, 'acme', 0)
})

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const partsOf = (token: string) => token.split('.').map((part) => Buffer.from(part, 'base64url'))

/** Signs any payload and header with the valid key. */
function signed(payload: Record<string, unknown>, header: Record<string, unknown> = {}): Promise<string> {
  return new SignJWT(payload)
    .setProtectedHeader({ alg: 'EdDSA', kid: key.kid, typ: 'JWT', ...header })
    .sign(key.privateKey)
}

describe('the key of a namespace', () => {
  it('is deterministic, and differs by namespace, epoch and agent', async () => {
    expect((await jwtKey(agentSeed, '', 0)).seed).toStrictEqual(key.seed)
    const others = [
      next,
      foreign,
      await jwtKey(agentSeed, 'acme', 1),
      await jwtKey(Buffer.alloc(32, 2), '', 0),
    ]
    expect(new Set([key, ...others].map(({ kid }) => kid)).size).toBe(5)
  })

  it('does not publish the seed', () => {
    expect(Object.keys(key.publicJwk).toSorted()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x'])
  })
})

describe('a token', () => {
  it('contains its claims', async () => {
    expect(await verifyToken(await mintToken(claims, key), [key], expected)).toStrictEqual({
      ok: true,
      claims,
    })
  })

  it('has only EdDSA, JWT and the key id in its header', async () => {
    const [header] = partsOf(await mintToken(claims, key))
    expect(JSON.parse(String(header))).toStrictEqual({ alg: 'EdDSA', kid: key.kid, typ: 'JWT' })
  })

  it('is valid with both keys during a rotation', async () => {
    for (const signer of [key, next]) {
      expect(await verifyToken(await mintToken(claims, signer), [key, next], expected)).toHaveProperty(
        'claims',
      )
    }
  })

  it('expires at exp, to the second', async () => {
    const token = await mintToken(claims, key)
    const at = (ms: number) => verifyToken(token, [key], { ...expected, nowMs: ms })
    expect((await at(claims.exp * 1_000 - 1)).ok).toBe(true)
    expect(await at(claims.exp * 1_000)).toStrictEqual({ ok: false, reason: 'expired' })
  })

  it('is invalid instead of expired when its signature or issuer is wrong too', async () => {
    const late = { ...expected, nowMs: claims.exp * 1_000 }
    expect(await verifyToken(await mintToken(claims, foreign), [key], late)).toStrictEqual(invalid)
    expect(await verifyToken(await mintToken({ ...claims, iss: 'x' }, key), [key], late)).toStrictEqual(
      invalid,
    )
  })

  it('fits into a header block with 4,096 bytes of metadata', async () => {
    const userMetadata = { text: 'x'.repeat(4_096 - '{}{"text":""}'.length) }
    const token = await mintToken({ ...claims, app_metadata: {}, user_metadata: userMetadata }, key)
    expect(token.length).toBeLessThan(8_192)
    expect(await verifyToken(token, [key], expected)).toHaveProperty('claims.user_metadata', userMetadata)
  })

  it.each(['sub', 'email', 'app_metadata', 'user_metadata', 'iat', 'exp', 'jti', 'iss', 'sid', 'amr'])(
    'is invalid without %s, or with %s of the wrong type',
    async (name) => {
      const { [name]: _, ...without } = { ...claims } as Record<string, unknown>
      expect(await verifyToken(await signed(without), [key], expected)).toStrictEqual(invalid)
      expect(await verifyToken(await signed({ ...claims, [name]: null }), [key], expected)).toStrictEqual(
        invalid,
      )
    },
  )

  it('may contain the claims that earlier versions lacked', async () => {
    const newer = { ...claims, auth_time: iat - 60, email_verified: true, verified_email: claims.email }
    expect(await verifyToken(await mintToken(newer, key), [key], expected)).toStrictEqual({
      ok: true,
      claims: newer,
    })
    for (const name of ['auth_time', 'email_verified', 'verified_email']) {
      for (const wrong of [null, {}, [], name === 'auth_time' ? '1' : 1]) {
        const token = await signed({ ...newer, [name]: wrong })
        expect(await verifyToken(token, [key], expected)).toStrictEqual(invalid)
      }
    }
  })

  it('is invalid before its nbf, or with a list for metadata', async () => {
    const early = await signed({ ...claims, nbf: iat + 60 })
    expect(await verifyToken(early, [key], expected)).toStrictEqual(invalid)
    const list = await signed({ ...claims, app_metadata: ['role'] })
    expect(await verifyToken(list, [key], expected)).toStrictEqual(invalid)
  })

  it.each(['', '.', '..', 'a.b.c', 'a'.repeat(20_000), '💥.💥.💥', 'null', 'e30.e30.'])(
    'is not %j',
    async (text) => {
      expect(await verifyToken(text, [key], expected)).toStrictEqual(invalid)
    },
  )
})

it('refuses a token whose parts are not canonical base64url', async () => {
  const token = await mintToken(claims, key)
  expect((await verifyToken(token, [key], expected)).ok).toBe(true)
  const last = token.at(-1) ?? ''
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  // The last character of a signature has four unused bits.
  const twin = `${token.slice(0, -1)}${alphabet[alphabet.indexOf(last) + 1]}`
  expect(partsOf(twin)).toStrictEqual(partsOf(token))
  for (const wrong of [twin, `${token}=`, token.replaceAll('-', '+').replaceAll('_', '/') + '=='])
    expect(await verifyToken(wrong, [key], expected)).toStrictEqual(invalid)
})

describe('a forged token', () => {
  const check = (token: string) => verifyToken(token, [key], expected)

  it('is refused with alg none in any spelling', async () => {
    for (const alg of ['none', 'None', 'NONE', '', null, undefined]) {
      const body = `${encoded({ alg, kid: key.kid, typ: 'JWT' })}.${encoded(claims)}`
      expect(await check(`${body}.`)).toStrictEqual(invalid)
      expect(await check(`${body}.${Buffer.alloc(64).toString('base64url')}`)).toStrictEqual(invalid)
    }
  })

  it('is refused with HS256 and the public key in any form as the secret', async () => {
    const secrets = [
      Buffer.from(key.publicJwk.x, 'base64url'),
      Buffer.from(key.publicJwk.x),
      Buffer.from(JSON.stringify(key.publicJwk)),
      Buffer.from(await exportSPKI(key.publicKey)),
    ]
    for (const secret of secrets) {
      const body = `${encoded({ alg: 'HS256', kid: key.kid, typ: 'JWT' })}.${encoded(claims)}`
      const mac = createHmac('sha256', secret).update(body).digest('base64url')
      expect(await check(`${body}.${mac}`)).toStrictEqual(invalid)
    }
  })

  it('is refused with a key in its header', async () => {
    const header = { alg: 'EdDSA', typ: 'JWT', jwk: foreign.publicJwk }
    const forge = (kid: string) =>
      new SignJWT({ ...claims }).setProtectedHeader({ ...header, kid }).sign(foreign.privateKey)
    expect(await check(await forge(key.kid))).toStrictEqual(invalid)
    expect(await check(await forge(foreign.kid))).toStrictEqual(invalid)
  })

  it('is refused from another namespace, with either kid', async () => {
    expect(await check(await mintToken(claims, foreign))).toStrictEqual(invalid)
    expect(await check(await mintToken(claims, { ...foreign, kid: key.kid }))).toStrictEqual(invalid)
    expect(await verifyToken(await mintToken(claims, key), [foreign], expected)).toStrictEqual(invalid)
  })

  it('is refused with an unknown or missing kid, with another type, and if there are no keys', async () => {
    expect(await check(await signed({ ...claims }, { kid: 'unknown' }))).toStrictEqual(invalid)
    expect(await check(await signed({ ...claims }, { kid: undefined }))).toStrictEqual(invalid)
    expect(await check(await signed({ ...claims }, { typ: 'license+jwt' }))).toStrictEqual(invalid)
    expect(await check(await signed({ ...claims }, { typ: undefined }))).toStrictEqual(invalid)
    expect(await verifyToken(await mintToken(claims, key), [], expected)).toStrictEqual(invalid)
  })

  it('is refused with the other name of the algorithm, and with a critical extension', async () => {
    const renamed = await new SignJWT({ ...claims })
      .setProtectedHeader({ alg: 'Ed25519', kid: key.kid, typ: 'JWT' })
      .sign(key.privateKey)
    expect(await check(renamed)).toStrictEqual(invalid)
    const [, payload, signature] = (await mintToken(claims, key)).split('.')
    const critical = { alg: 'EdDSA', kid: key.kid, typ: 'JWT', crit: ['x'], x: 1 }
    expect(await check(`${encoded(critical)}.${payload}.${signature}`)).toStrictEqual(invalid)
  })

  it('is refused with a changed claim and the signature of another token', async () => {
    const [header, , signature] = (await mintToken(claims, key)).split('.')
    const changed = encoded({ ...claims, app_metadata: { role: 'root' } })
    expect(await check(`${header}.${changed}.${signature}`)).toStrictEqual(invalid)
  })
})

describe('a token outside this server', () => {
  let address: string
  const server = createServer((_, answer) => {
    answer.setHeader('content-type', 'application/json')
    answer.end(JSON.stringify({ keys: [next.publicJwk, key.publicJwk] }))
  })
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/auth/jwks`
  })
  afterAll(() => new Promise((resolve) => server.close(resolve)))

  it('can be verified with the published keys', async () => {
    const keys = createRemoteJWKSet(new URL(address))
    const options = { issuer: expected.issuer, currentDate: new Date(nowMs) }
    const { payload } = await jwtVerify(await mintToken(claims, key), keys, options)
    expect(payload).toStrictEqual(claims)
    await expect(jwtVerify(await mintToken(claims, foreign), keys, options)).rejects.toThrow(
      'no applicable key',
    )
  })

  it('can be verified with node:crypto only', async () => {
    const token = await mintToken(claims, key)
    const [, payload, signature] = partsOf(token)
    const covered = Buffer.from(token.slice(0, token.lastIndexOf('.')))
    const publicKey = { key: { kty: 'OKP', crv: 'Ed25519', x: key.publicJwk.x }, format: 'jwk' } as const
    expect(verify(null, covered, publicKey, signature ?? Buffer.alloc(0))).toBe(true)
    expect(JSON.parse(String(payload))).toStrictEqual(claims)
  })
})
