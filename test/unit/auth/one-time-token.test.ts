// @run on the built program
import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { hashOneTimeToken, makeOneTimeToken } from '../../../src/auth/one-time-token.js'
import { pooledRandom } from '../../../src/base/random.js'

it('creates 32 random bytes in base64url, and their SHA-256 hash', () => {
  const { token, hash } = makeOneTimeToken((count) => Buffer.alloc(count, 7))
  expect(Buffer.from(token, 'base64url')).toStrictEqual(Buffer.alloc(32, 7))
  expect(hash).toBe(createHash('sha256').update(Buffer.alloc(32, 7)).digest('hex'))
})

it('hashes a token again to the same hash, and never creates one twice', () => {
  const random = pooledRandom()
  const created = Array.from({ length: 500 }, () => makeOneTimeToken(random))
  for (const { token, hash } of created) expect(hashOneTimeToken(token)).toBe(hash)
  expect(new Set(created.map(({ hash }) => hash)).size).toBe(500)
})

it('refuses a token that is not canonical', () => {
  const { token } = makeOneTimeToken((count) => Buffer.alloc(count))
  expect(token.endsWith('A')).toBe(true)
  // The last character has two unused bits.
  const twin = `${token.slice(0, -1)}B`
  expect(Buffer.from(twin, 'base64url')).toStrictEqual(Buffer.from(token, 'base64url'))
  for (const wrong of [twin, `${token}=`, ` ${token}`, `${token}\n`, token.slice(1), `${token}A`, '']) {
    expect(hashOneTimeToken(wrong)).toBeUndefined()
  }
})
