import { createHmac, hkdfSync } from 'node:crypto'
import { calculateJwkThumbprint, compactVerify } from 'jose'
import { describe, expect, it } from 'vitest'
import { jwtKeyOfSeed } from '../../../src/auth/jwt-key.js'
import { deriveSeed } from '../../../src/strand/keys.js'

const hex = (text: string) => Buffer.from(text, 'hex')
const rangeOf = (from: number, count: number) =>
  Buffer.from(Array.from({ length: count }, (_, at) => from + at))

describe('HKDF-SHA256', () => {
  it.each([
    [
      'A.1',
      Buffer.alloc(22, 0x0b),
      rangeOf(0x00, 13),
      rangeOf(0xf0, 10),
      '3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865',
    ],
    [
      'A.2',
      rangeOf(0x00, 80),
      rangeOf(0x60, 80),
      rangeOf(0xb0, 80),
      'b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87',
    ],
    [
      'A.3',
      Buffer.alloc(22, 0x0b),
      Buffer.alloc(0),
      Buffer.alloc(0),
      '8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8',
    ],
  ])('gives RFC 5869 %s on this platform', (_, ...[secret, salt, info, okm]) => {
    expect(Buffer.from(hkdfSync('sha256', secret, salt, info, okm.length / 2)).toString('hex')).toBe(okm)
  })

  it('derives seeds as RFC 5869 defines for no salt and one block', () => {
    const master = rangeOf(0x40, 32)
    const extracted = createHmac('sha256', Buffer.alloc(32)).update(master).digest()
    const expanded = createHmac('sha256', extracted).update('some purpose').update(hex('01')).digest()
    expect(deriveSeed(master, 'some purpose')).toStrictEqual(expanded)
  })
})

describe('an Ed25519 key as a JWK', () => {
  // RFC 8037, appendix A.
  const seed = hex('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60')
  const jws =
    'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg'

  it('matches RFC 8037 A.1 and A.2, with the thumbprint of A.3', async () => {
    const key = await jwtKeyOfSeed(seed)
    expect(key.publicJwk).toStrictEqual({
      kty: 'OKP',
      crv: 'Ed25519',
      x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
      kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
      alg: 'EdDSA',
      use: 'sig',
    })
    expect(key.kid).toBe(key.publicJwk.kid)
    expect(key.privateKey.export({ format: 'jwk' })).toMatchObject({
      d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
      x: key.publicJwk.x,
    })
  })

  it('verifies the signature of RFC 8037 A.4 and A.5', async () => {
    const key = await jwtKeyOfSeed(seed)
    const { payload } = await compactVerify(jws, key.publicKey)
    expect(Buffer.from(payload).toString()).toBe('Example of Ed25519 signing')
    await expect(compactVerify(jws.replace('.hgyY', '.hgyZ'), key.publicKey)).rejects.toThrow('verification')
  })
})

describe('a thumbprint', () => {
  it('matches RFC 7638, section 3.1', async () => {
    const key = {
      kty: 'RSA',
      n: '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw',
      e: 'AQAB',
      alg: 'RS256',
      kid: '2011-04-29',
    } as const
    expect(await calculateJwkThumbprint(key)).toBe('NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs')
  })
})
