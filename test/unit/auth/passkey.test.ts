// @run on the built program
import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { counterGrows, decoyIds, decoyKey, isDecoy } from '../../../src/auth/passkey.js'

const key = decoyKey(Buffer.alloc(32, 7))
const owner = { namespace: '', email: 'ada@example.org' }

describe('decoy credential ids', () => {
  it('are deterministic for a mailbox of a namespace, and differ from those of others', () => {
    expect(decoyIds(key, owner, 10)).toEqual(decoyIds(decoyKey(Buffer.alloc(32, 7)), owner, 10))
    const lists = [
      decoyIds(key, owner, 10),
      decoyIds(key, { ...owner, email: 'eve@example.org' }, 10),
      decoyIds(key, { ...owner, namespace: 'acme' }, 10),
      decoyIds(decoyKey(Buffer.alloc(32, 8)), owner, 10),
    ]
    expect(new Set(lists.flat()).size).toBe(40)
  })

  it('do not change between versions', () => {
    expect(decoyIds(key, owner, 2)).toEqual([
      'or38fy1hGXzyPe1NL7B3V-EesFwkxh40vrbGHcxUwCQ',
      'UZ5RFsbEVjNMs2KsFMt-AA',
    ])
  })

  it('have all lengths of real ones', () => {
    const found = new Set<number>()
    for (let user = 0; user < 100; user++) {
      const ids = decoyIds(key, { ...owner, email: `user${user}@example.org` }, 10)
      for (const id of ids) found.add(Buffer.from(id, 'base64url').length)
    }
    expect([...found].toSorted((one, other) => one - other)).toEqual([16, 20, 32, 48, 64])
  })

  it('are recognised by this server, and other ids are not mistaken for decoys', () => {
    for (const id of decoyIds(key, owner, 10)) {
      expect(isDecoy(key, owner.namespace, id)).toBe(true)
      expect(isDecoy(decoyKey(Buffer.alloc(32, 8)), owner.namespace, id)).toBe(false)
      // Registering the ids of a list in another namespace must not reveal which of them are real.
      expect(isDecoy(key, 'other', id)).toBe(false)
      const bytes = Buffer.from(id, 'base64url')
      bytes[0] = (bytes[0] ?? 0) ^ 1
      expect(isDecoy(key, owner.namespace, bytes.toString('base64url'))).toBe(false)
    }
    for (const id of decoyIds(key, { ...owner, namespace: 'acme' }, 10))
      expect(['', 'acme', 'acm'].map((one) => isDecoy(key, one, id))).toEqual([false, true, false])
    for (const length of [0, 1, 16, 20, 32, 33, 48, 64, 1_023]) {
      expect(isDecoy(key, owner.namespace, randomBytes(length).toString('base64url'))).toBe(false)
    }
  })
})

describe('a signature counter', () => {
  it.each([
    [0, 0, true],
    [0, 1, true],
    [5, 6, true],
    [5, 500, true],
    [5, 5, false],
    [5, 4, false],
    [5, 0, false],
  ])('may change from %i to %i: %s', (stored, received, isAllowed) => {
    expect(counterGrows(stored, received)).toBe(isAllowed)
  })
})
