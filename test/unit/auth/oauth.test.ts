// @run on the built program
import { describe, expect, it } from 'vitest'
import {
  oauthKey,
  oauthProviderName,
  oauthSecrets,
  oauthCookie,
  oauthCookieName,
  readCookie,
} from '../../../src/auth/oauth.js'

const key = oauthKey(Buffer.alloc(32, 1))
const state = Buffer.alloc(32, 2).toString('base64url')

describe('nonce and code verifier', () => {
  it('are deterministic for a sign-in, and differ from each other and from those of other sign-ins', () => {
    const all = [
      oauthSecrets(key, '', state),
      oauthSecrets(key, 'acme', state),
      oauthSecrets(key, '', Buffer.alloc(32, 3).toString('base64url')),
      oauthSecrets(oauthKey(Buffer.alloc(32, 9)), '', state),
    ].flatMap(({ nonce, codeVerifier }) => [nonce, codeVerifier])
    expect(new Set(all).size).toBe(8)
    expect(oauthSecrets(key, '', state)).toEqual(oauthSecrets(key, '', state))
    // RFC 7636, 4.1: 43 to 128 unreserved characters.
    for (const secret of all) expect(secret).toMatch(/^[\w-]{43}$/)
  })
})

describe('the name of a provider', () => {
  it('is one of two, with exact case', () => {
    expect(['google', 'github'].map(oauthProviderName)).toEqual(['google', 'github'])
    for (const text of [undefined, '', 'Google', 'toString', '__proto__']) {
      expect(oauthProviderName(text)).toBeUndefined()
    }
  })
})

describe('the cookie of a browser', () => {
  const plain = {
    provider: 'github',
    callbackUrl: 'http://localhost:8787/base/v1/auth/oauth/github/callback',
  } as const
  const secure = {
    provider: 'google',
    callbackUrl: 'https://auth.example.com/v1/auth/oauth/google/callback',
  } as const

  it('is restricted to the host over https, and to the path of the provider over http', () => {
    expect(oauthCookie(secure, 'v', 600)).toBe(
      '__Host-strandfast-oauth-google=v; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure',
    )
    expect(oauthCookie(plain, 'v', 600)).toBe(
      'strandfast-oauth-github=v; Path=/base/v1/auth/oauth/github; Max-Age=600; HttpOnly; SameSite=Lax',
    )
  })

  it('is found among other cookies by its whole name', () => {
    const name = oauthCookieName(plain)
    expect(readCookie(`a=b; ${name}=abc-_1;c=d`, name)).toBe('abc-_1')
    expect(readCookie(`x${name}=1; ${name}x=2; ${name}`, name)).toBeUndefined()
    expect(readCookie('', name)).toBeUndefined()
  })
})
