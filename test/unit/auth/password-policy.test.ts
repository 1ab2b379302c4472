// @run on the built program
import { describe, expect, it } from 'vitest'
import {
  bundledBlocklist,
  foldPassword,
  passwordCharsMin,
  passwordFaults,
} from '../../../src/auth/password-policy.js'

const common = 'Expected a password that is not on the list of common ones'

describe('a new password', () => {
  it('has at least 8 characters, counted as code points', () => {
    expect(passwordFaults('abcdefg', undefined)).toEqual(['Expected at least 8 characters'])
    expect(passwordFaults('abcdefgh', undefined)).toEqual([])
    expect(passwordFaults('🔑'.repeat(7), undefined)).toEqual(['Expected at least 8 characters'])
    expect(passwordFaults('🔑'.repeat(8), undefined)).toEqual([])
  })

  it('has at most 1,024 bytes', () => {
    expect(passwordFaults('a'.repeat(1_024), undefined)).toEqual([])
    expect(passwordFaults('a'.repeat(1_025), undefined)).toEqual(['Expected at most 1,024 bytes'])
    expect(passwordFaults('é'.repeat(512), undefined)).toEqual([])
    expect(passwordFaults('é'.repeat(513), undefined)).toEqual(['Expected at most 1,024 bytes'])
  })

  it.each(['password1', 'PassWord1', 'ｐａｓｓｗｏｒｄ１', 'pa$$w0rd', '1234567890', 'qwertyuiop'])(
    'is not %s, which is on the bundled list',
    (password) => {
      expect(passwordFaults(password, bundledBlocklist())).toEqual([common])
    },
  )

  it('may be common if the list is off', () => {
    expect(passwordFaults('password1', undefined)).toEqual([])
  })

  it('may be an uncommon one', () => {
    expect(passwordFaults('correct horse battery staple', bundledBlocklist())).toEqual([])
  })

  it('is refused with all of its faults', () => {
    expect(passwordFaults('secret', new Set(['secret']))).toEqual(['Expected at least 8 characters', common])
  })
})

describe('the bundled list', () => {
  it('has thousands of passwords, all folded and long enough for the length rule', () => {
    const words = [...bundledBlocklist()]
    expect(words.length).toBeGreaterThan(15_000)
    expect(
      words.filter((word) => word !== foldPassword(word) || [...word].length < passwordCharsMin),
    ).toEqual([])
  })

  it('is created once', () => {
    expect(bundledBlocklist()).toBe(bundledBlocklist())
  })
})
