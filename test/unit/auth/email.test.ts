// @run on the built program
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { emailHmac, normalizeEmail } from '../../../src/auth/email.js'

describe('an e-mail address', () => {
  it.each([
    ['A@b.c ', 'a@b.c'],
    ['\t a@B.C\n', 'a@b.c'],
    ['a.b+tag@b.c', 'a.b+tag@b.c'],
    ["o'neil@example.com", "o'neil@example.com"],
    ['Jose\u0301@example.com', 'jos\u00e9@example.com'],
    ['JOS\u00c9@example.com', 'jos\u00e9@example.com'],
    ['a@B\u00fccher.example', 'a@xn--bcher-kva.example'],
    ['a@bu\u0308cher.example', 'a@xn--bcher-kva.example'],
    ['a@xn--bcher-kva.example', 'a@xn--bcher-kva.example'],
    ['a@\uff45xample.com', 'a@example.com'],
    // The Kelvin sign is a letter k in NFC.
    ['\u212a@b.c', 'k@b.c'],
  ])('normalizes %j to %s', (typed, mailbox) => {
    expect(normalizeEmail(typed)).toBe(mailbox)
  })

  it.each([
    '',
    '@',
    'a',
    'a@',
    '@b.c',
    'a@b',
    'a@b.c.',
    'a@.b.c',
    'a@b..c',
    'a@-b.c',
    'a@b-.c',
    'a@b_c.d',
    '.a@b.c',
    'a.@b.c',
    'a..a@b.c',
    'a@a@b.c',
    '"a b"@b.c',
    'a b@b.c',
    'a,b@b.c',
    '<a@b.c>',
    'a@b.c, d@e.f',
    'a@b.c\r\nBcc: d@e.f',
    'a\0@b.c',
    'a@b.c/d',
    'a@b.c?d',
    'a@b.c#d',
    'a@b%2ec.d',
    'a@b\t.c',
    'a@127.0.0.1',
    'a@[127.0.0.1]',
    'a@0x7f.1',
    'a@b.c:25',
    'a@xn--a.com',
    'a\u200b@b.c',
    'a\u202e@b.c',
    'a@b\u200d.c',
    'a\u00ad@b.c',
    // Invisible letters and marks.
    'a\ufe0f@b.c',
    'a\u3164@b.c',
    'a\u115f@b.c',
    'a\u034f@b.c',
    'a\u{e0100}@b.c',
    'a@b\ufe0fc.de',
    'a@b\uffa0.de',
  ])('is not %j', (typed) => {
    expect(normalizeEmail(typed)).toBeUndefined()
  })

  it('has at most 64 bytes before the @ and 254 in all', () => {
    const domain = `${'d'.repeat(63)}.${'d'.repeat(63)}.${'d'.repeat(61)}`
    expect(Buffer.byteLength(`${'a'.repeat(64)}@${domain}`)).toBe(254)
    expect(normalizeEmail(`${'a'.repeat(64)}@${domain}`)).toBeDefined()
    expect(normalizeEmail(`${'a'.repeat(64)}@${domain}d`)).toBeUndefined()
    expect(normalizeEmail(`${'a'.repeat(65)}@b.c`)).toBeUndefined()
    expect(normalizeEmail(`${'é'.repeat(32)}@b.c`)).toBeDefined()
    expect(normalizeEmail(`${'é'.repeat(32)}a@b.c`)).toBeUndefined()
    expect(normalizeEmail(`a@${'d'.repeat(64)}.c`)).toBeUndefined()
    expect(normalizeEmail(`${' '.repeat(100_000)}a@b.c`)).toBeUndefined()
  })

  it('does not change when it is normalized again', () => {
    const part = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(part, part, fc.boolean(), (local, label, upper) => {
        const typed = `${local}@${label}.Example`
        const once = normalizeEmail(upper ? typed.toUpperCase() : typed)
        fc.pre(once !== undefined)
        expect(normalizeEmail(once)).toBe(once)
        expect(normalizeEmail(`  ${once.normalize('NFD').toUpperCase()}`)).toBeDefined()
      }),
    )
  })
})

describe('the HMAC of an e-mail', () => {
  it('matches test case 2 of RFC 4231', () => {
    expect(emailHmac(Buffer.from('Jefe'), 'what do ya want for nothing?')).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    )
  })

  it('differs by key and by address', () => {
    const key = Buffer.alloc(32, 1)
    expect(emailHmac(key, 'a@b.c')).not.toBe(emailHmac(key, 'b@b.c'))
    expect(emailHmac(key, 'a@b.c')).not.toBe(emailHmac(Buffer.alloc(32, 2), 'a@b.c'))
  })
})
