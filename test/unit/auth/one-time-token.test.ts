// @run on the built program
import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { hashOneTimeToken, makeOneTimeToken } from '../../../src/auth/one-time-token.js'
import { pooledRandom } from '../../../src/base/random.js'

it('makes 32 random bytes in base64url, and the SHA-256 hash of them', () => {
  const { token, hash } = makeOneTimeToken((count) => Buffer.alloc(count, 7))
  expect(Buffer.from(token, 'base64url')).toStrictEqual(Buffer.alloc(32, 7))
  expect(hash).toBe(createHash('sha256').update(Buffer.alloc(32, 7)).digest('hex'))
})

it('finds a token again by its hash, and never makes one twice', () => {
  const random = pooledRandom()
  const made = Array.from({ length: 500 }, () => makeOneTimeToken(random))
  for (const { token, hash } of made) expect(hashOneTimeToken(token)).toBe(hash)
  expect(new Set(made.map(({ hash }) => hash)).size).toBe(500)
})

it('takes one spelling of a token only', () => {
  const { token } = makeOneTimeToken((count) => Buffer.alloc(count))
  expect(token.endsWith('A')).toBe(true)
  // The last character holds two bits that stand for nothing.
  const twin = `${token.slice(0, -1)}B`
  expect(Buffer.from(twin, 'base64url')).toStrictEqual(Buffer.from(token, 'base64url'))
  for (const wrong of [twin, `${token}=`, ` ${token}`, `${token}\n`, token.slice(1), `${token}A`, '']) {
    expect(hashOneTimeToken(wrong)).toBeUndefined()
  }
})
