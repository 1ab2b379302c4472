// @run on the built program
import { SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import { jwtKeyOfSeed } from '../../../src/auth/jwt-key.js'
import { checkLicense, issueLicense } from '../../../src/auth/license.js'
import { keyPairFromSeed } from '../../../src/strand/keys.js'

const seed = Buffer.alloc(32, 3)
const { publicKey } = keyPairFromSeed(seed)
const other = keyPairFromSeed(Buffer.alloc(32, 4)).publicKey
const nowMs = 1_800_000_000_000
const day = 86_400_000
const grant = { licensee: 'Ännchen & Co', days: 30, features: ['auth'] }
const invalid = { ok: false, reason: 'invalid' }

describe('a license key', () => {
  it('contains licensee, expiry and features', async () => {
    const token = await issueLicense(seed, grant, nowMs)
    expect(await checkLicense(token, publicKey, nowMs)).toStrictEqual({
      ok: true,
      license: { licensee: 'Ännchen & Co', expiresAtMs: nowMs + 30 * day, features: ['auth'] },
    })
    expect((await checkLicense(token, publicKey.toUpperCase(), nowMs)).ok).toBe(true)
  })

  it('contains nothing else', async () => {
    const [, payload] = (await issueLicense(seed, grant, nowMs)).split('.')
    expect(JSON.parse(Buffer.from(String(payload), 'base64url').toString())).toStrictEqual({
      licensee: 'Ännchen & Co',
      exp: nowMs / 1_000 + 30 * 86_400,
      features: ['auth'],
    })
  })

  it('expires after its days', async () => {
    const token = await issueLicense(seed, grant, nowMs)
    expect((await checkLicense(token, publicKey, nowMs + 30 * day - 1)).ok).toBe(true)
    expect(await checkLicense(token, publicKey, nowMs + 30 * day)).toStrictEqual({
      ok: false,
      reason: 'expired',
    })
  })

  it('is invalid for another authority or an invalid public key, and when it is changed', async () => {
    const token = await issueLicense(seed, grant, nowMs)
    const [header, , signature] = token.split('.')
    const richer = Buffer.from('{"licensee":"x","exp":9999999999,"features":["auth"]}').toString('base64url')
    expect(await checkLicense(token, other, nowMs)).toStrictEqual(invalid)
    expect(await checkLicense(token, other, nowMs + 31 * day)).toStrictEqual(invalid)
    expect(await checkLicense(token, 'abc', nowMs)).toStrictEqual(invalid)
    expect(await checkLicense(`${token}=`, publicKey, nowMs)).toStrictEqual(invalid)
    expect(await checkLicense(`${header}.${richer}.${signature}`, publicKey, nowMs)).toStrictEqual(invalid)
  })

  it.each(['', 'license', 'a.b.c'])('is not %j', async (text) => {
    expect(await checkLicense(text, publicKey, nowMs)).toStrictEqual(invalid)
  })

  it.each([
    ['without licensee', { exp: 1_900_000_000, features: [] }, 'license+jwt'],
    ['without exp', { licensee: 'x', features: [] }, 'license+jwt'],
    ['without features', { licensee: 'x', exp: 1_900_000_000 }, 'license+jwt'],
    [
      'with features that are not a list',
      { licensee: 'x', exp: 1_900_000_000, features: 'all' },
      'license+jwt',
    ],
    [
      'with a feature that is not a text',
      { licensee: 'x', exp: 1_900_000_000, features: [1] },
      'license+jwt',
    ],
    ['with the type of user tokens', { licensee: 'x', exp: 1_900_000_000, features: [] }, 'JWT'],
  ])('is invalid %s, even if it is signed', async (_, payload, typ) => {
    const { privateKey } = await jwtKeyOfSeed(seed)
    const token = await new SignJWT(payload).setProtectedHeader({ alg: 'EdDSA', typ }).sign(privateKey)
    expect(await checkLicense(token, publicKey, nowMs)).toStrictEqual(invalid)
  })
})
