import { describe, expect, it } from 'vitest'
import type { AuthMail, LinkMail } from '../../../src/auth/outbox-message.js'
import { writeMail } from '../../../src/outbound/mail-templates.js'

const context = { linkBaseUrl: 'https://app.example/account', nowMs: 1_000_000 }

function linkMail(more: Partial<LinkMail> = {}): LinkMail {
  const expiresAtMs = context.nowMs + 900_000
  return { kind: 'magicLink', to: 'ann@example.org', organismId: '', token: 'tok_en-1', expiresAtMs, ...more }
}

describe('writeMail', () => {
  it.each([
    ['magicLink', 'https://app.example/account/magic-link?token=tok_en-1', 'Sign in to app.example'],
    [
      'verifyEmail',
      'https://app.example/account/verify-email?token=tok_en-1',
      'Confirm your e-mail address for app.example',
    ],
    [
      'passwordReset',
      'https://app.example/account/reset-password?token=tok_en-1',
      'Set a new password for app.example',
    ],
  ] as const)('puts the link of %s into both forms', (kind, url, subject) => {
    const content = writeMail(linkMail({ kind }), context)
    expect(content.subject).toBe(subject)
    expect(content.text).toContain(`\n\n${url}\n\n`)
    expect(content.html).toContain(`<a href="${url}">`)
  })

  it('names the organism in the link of its namespace', () => {
    const { text, html } = writeMail(linkMail({ organismId: 'acme' }), context)
    expect(text).toContain('https://app.example/account/magic-link?token=tok_en-1&organism=acme\n')
    expect(html).toContain('?token=tok_en-1&amp;organism=acme"')
  })

  it('appends the pages to a base address with or without a slash at the end', () => {
    for (const linkBaseUrl of ['https://app.example', 'https://app.example/']) {
      expect(writeMail(linkMail(), { ...context, linkBaseUrl }).text).toContain(
        '\nhttps://app.example/magic-link?token=',
      )
    }
  })

  it.each([
    [29_999, 'less than a minute'],
    [59_999, '1 minute'],
    [899_000, '15 minutes'],
    [869_000, '14 minutes'],
    [7_199_500, '2 hours'],
    [5_400_000, '1.5 hours'],
    [86_399_000, '1 day'],
    [604_799_000, '7 days'],
  ])('describes the remaining %d ms of a link as %s', (leftMs, words) => {
    const { text } = writeMail(linkMail({ expiresAtMs: context.nowMs + leftMs }), context)
    expect(text).toContain(`within ${words}.`)
  })

  it('notifies the owner of an address of a registration, without a token', () => {
    const mail: AuthMail = { kind: 'registrationTried', to: 'ann@example.org', organismId: '' }
    const { subject, text, html } = writeMail(mail, context)
    expect(subject).toBe('You already have an account at app.example')
    expect(text).toContain('\n\nhttps://app.example/account\n\n')
    expect(text + html).not.toContain('token')
  })

  it('notifies a user of a new passkey and how to remove it, without a token', () => {
    const mail: AuthMail = { kind: 'passkeyRegistered', to: 'ann@example.org', organismId: '' }
    const { subject, text, html } = writeMail(mail, context)
    expect(subject).toBe('A passkey was added to your account at app.example')
    expect(text).toContain('\n\nhttps://app.example/account\n\n')
    expect(text).toContain('remove all passkeys')
    expect(text + html).not.toContain('token')
  })

  it('escapes all values in the HTML', () => {
    const { html } = writeMail(linkMail({ token: `"><script>'&` }), {
      ...context,
      linkBaseUrl: "https://app.example/a'b",
    })
    expect(html).not.toMatch(/<script|a'b/)
    expect(html).toContain('/a&#39;b/magic-link?token=%22%3E%3Cscript%3E%27%26"')
  })

  it('does not contain the address of the recipient, so that a forwarded mail does not reveal it', () => {
    const { subject, text, html } = writeMail(linkMail(), context)
    expect(subject + text + html).not.toContain('ann@')
  })
})
