import { hashSync } from '@node-rs/argon2'
import { afterEach, describe, expect, it } from 'vitest'
import { passwordPepper } from '../../src/auth/password-policy.js'
import type { Refusal } from '../../src/base/errors.js'
import type { PasswordPool } from '../../src/dispatch/pools/password-pool.js'

// A thread cannot load TypeScript, so modules that start threads are imported from the build.
const built = (path: string) => import(new URL(`../../dist/${path}`, import.meta.url).href)
const pooling: typeof import('../../src/dispatch/pools/password-pool.js') = await built(
  'src/dispatch/pools/password-pool.js',
)
const { dummyHash, needsRehash }: typeof import('../../workers/password.js') =
  await built('workers/password.js')

const pepper = passwordPepper(Buffer.alloc(32, 1))
const pools: PasswordPool[] = []

function open(secret: Uint8Array = pepper, size = { threads: 1, queueMax: 16 }): PasswordPool {
  const pool = new pooling.PasswordPool({ pepper: secret }, size)
  pools.push(pool)
  return pool
}

afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close()
})

function valueOf<T extends string | object>(answer: T | Refusal): T {
  if (isRefused(answer)) throw new Error(answer.detail)
  return answer
}

const isRefused = (answer: string | object): answer is Refusal =>
  typeof answer === 'object' && 'code' in answer

/** A hash with the parameters of an older version. */
function weakHash(password: string): string {
  return hashSync(password, { algorithm: 2, memoryCost: 8192, timeCost: 1, parallelism: 1, secret: pepper })
}

describe('PasswordPool', () => {
  it('hashes by argon2id with 19456 KiB, two passes, one lane and a random salt', async () => {
    const pool = open()
    const [one, other] = [await pool.hash({ password: 'sesame' }), await pool.hash({ password: 'sesame' })]
    expect(valueOf(one)).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(valueOf(one)).not.toBe(valueOf(other))
  })

  it('distinguishes the correct password from a wrong one', async () => {
    const pool = open()
    const encoded = valueOf(await pool.hash({ password: 'sesame' }))
    expect(valueOf(await pool.verify({ password: 'sesame', encoded }))).toEqual({ matches: true })
    expect(valueOf(await pool.verify({ password: 'Sesame', encoded }))).toEqual({ matches: false })
    expect(valueOf(await pool.verify({ password: '', encoded }))).toEqual({ matches: false })
  })

  it('does not match if there is no hash', async () => {
    expect(valueOf(await open().verify({ password: 'sesame' }))).toEqual({ matches: false })
  })

  it('compares with a dummy hash of the current parameters if there is no hash', async () => {
    const real = valueOf(await open().hash({ password: 'sesame' }))
    const shape = (encoded: string) =>
      encoded.split('$').map((part, index) => (index > 3 ? part.length : part))
    expect(shape(dummyHash())).toEqual(shape(real))
  })

  it('does not match a hash with another pepper', async () => {
    const encoded = valueOf(await open().hash({ password: 'sesame' }))
    const other = open(passwordPepper(Buffer.alloc(32, 2)))
    expect(valueOf(await other.verify({ password: 'sesame', encoded }))).toEqual({ matches: false })
  })

  it('treats the composed and the decomposed form of a letter as equal', async () => {
    const pool = open()
    const encoded = valueOf(await pool.hash({ password: 'caf\u00e9 au lait' }))
    expect(valueOf(await pool.verify({ password: 'cafe\u0301 au lait', encoded }))).toEqual({ matches: true })
  })

  it('distinguishes passwords that differ only in their last byte', async () => {
    const pool = open()
    const password = 'x'.repeat(1024)
    const encoded = valueOf(await pool.hash({ password }))
    expect(valueOf(await pool.verify({ password: `${password.slice(1)}y`, encoded }))).toEqual({
      matches: false,
    })
    expect(valueOf(await pool.verify({ password, encoded }))).toEqual({ matches: true })
  })

  it('hashes a correct password again if the hash has weaker parameters', async () => {
    const pool = open()
    const encoded = weakHash('sesame')
    const { matches, rehashed } = valueOf(await pool.verify({ password: 'sesame', encoded }))
    expect(matches).toBe(true)
    if (rehashed === undefined) throw new Error('Expected a new hash')
    expect(needsRehash(rehashed)).toBe(false)
    expect(valueOf(await pool.verify({ password: 'sesame', encoded: rehashed }))).toEqual({ matches: true })
    expect(valueOf(await pool.verify({ password: 'wrong', encoded }))).toEqual({ matches: false })
  })

  it('refuses requests immediately while its queue is full, and answers the queued ones', async () => {
    const pool = open(pepper, { threads: 1, queueMax: 2 })
    // No thread runs yet, so the first request waits in the queue too.
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => pool.verify({ password: 'sesame' })))
    const refused = answers.filter(isRefused)
    expect(refused.length).toBeGreaterThanOrEqual(2)
    for (const answer of refused) {
      expect(answer).toMatchObject({ code: 'overloaded', retryAfterSecs: 1 })
    }
    expect(answers.slice(0, 2).map(isRefused)).toEqual([false, false])
    expect(valueOf(await pool.verify({ password: 'sesame' }))).toEqual({ matches: false })
  })

  it('refuses waiting and later requests when it closes', async () => {
    const pool = open()
    const waiting = Array.from({ length: 5 }, () => pool.verify({ password: 'sesame' }))
    await pool.close()
    for (const answer of [...(await Promise.all(waiting)), await pool.hash({ password: 'late' })]) {
      expect(answer).toMatchObject({ code: 'unavailable' })
    }
  })

  it('throws for a stored text that is not a hash', async () => {
    await expect(open().verify({ password: 'sesame', encoded: 'plain text' })).rejects.toThrow()
  })
})

describe('needsRehash', () => {
  const salted = (parameters: string) => `$${parameters}$c2FsdHNhbHRzYWx0c2FsdA$${'A'.repeat(43)}`

  it.each([
    ['argon2id$v=19$m=19456,t=2,p=1', false],
    ['argon2id$v=19$m=65536,t=3,p=1', false],
    ['argon2id$v=19$m=19455,t=2,p=1', true],
    ['argon2id$v=19$m=19456,t=1,p=1', true],
    ['argon2id$v=16$m=19456,t=2,p=1', true],
    ['argon2i$v=19$m=19456,t=2,p=1', true],
    ['argon2d$v=19$m=19456,t=2,p=1', true],
  ])('returns for %s: %s', (parameters, expected) => {
    expect(needsRehash(salted(parameters))).toBe(expected)
  })
})
