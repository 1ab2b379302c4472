import { durationText } from '../base/duration.js'
import { unreachable } from '../base/assert.js'
import type { AuthMail, LinkMail } from '../auth/outbox-message.js'

export interface MailContent {
  subject: string
  text: string
  html: string
}

export interface MailContext {
  linkBaseUrl: string
  nowMs: number
}

/**
 * Pages below SERVICE_MAIL_LINK_BASE_URL. Each has a button that posts `?token=`; opening the page consumes
 * no token.
 */
const pages = {
  magicLink: 'magic-link',
  verifyEmail: 'verify-email',
  passwordReset: 'reset-password',
} as const

interface Letter {
  subject: string
  before: string
  link: { label: string; url: string }
  after: string[]
}

/** Writes a mail. It contains no text from the client that caused it, who may be an attacker. */
export function writeMail(mail: AuthMail, context: MailContext): MailContent {
  const letter = letterOf(mail, context)
  return { subject: letter.subject, text: asText(letter), html: asHtml(letter) }
}

function letterOf(mail: AuthMail, context: MailContext): Letter {
  const site = new URL(context.linkBaseUrl).host
  const ignore = 'If you did not request this mail, ignore it: nothing happens without the link.'
  switch (mail.kind) {
    case 'magicLink':
      return {
        subject: `Sign in to ${site}`,
        before: `Use this link to sign in to ${site}.`,
        link: { label: 'Sign in', url: tokenUrl(mail, context) },
        after: [lifetime(mail, context), ignore],
      }
    case 'verifyEmail':
      return {
        subject: `Confirm your e-mail address for ${site}`,
        before: `Use this link to confirm that this address is yours and belongs to your account at ${site}.`,
        link: { label: 'Confirm the address', url: tokenUrl(mail, context) },
        after: [lifetime(mail, context), ignore],
      }
    case 'passwordReset':
      return {
        subject: `Set a new password for ${site}`,
        before: `Use this link to set a new password for your account at ${site}.`,
        link: { label: 'Set a new password', url: tokenUrl(mail, context) },
        after: [
          lifetime(mail, context),
          'If you did not request this mail, ignore it: your password stays the same.',
        ],
      }
    case 'registrationTried':
      return {
        subject: `You already have an account at ${site}`,
        before: `A registration at ${site} was attempted with your address, which already has an account.`,
        link: { label: `Go to ${site}`, url: context.linkBaseUrl },
        after: [
          'If it was you, sign in instead, or request a new password there.',
          'If it was not you, you need not do anything: your account has not changed.',
        ],
      }
    case 'passkeyRegistered':
      return {
        subject: `A passkey was added to your account at ${site}`,
        before: `A passkey was added to your account at ${site}. It can be used to sign in from now on.`,
        link: { label: `Go to ${site}`, url: context.linkBaseUrl },
        after: [
          'If it was you, you need not do anything.',
          'If it was not you, set a new password, remove all passkeys with it, and add your own passkeys again.',
        ],
      }
    default:
      return unreachable(mail)
  }
}

function tokenUrl({ kind, token, organismId }: LinkMail, { linkBaseUrl }: MailContext): string {
  const url = new URL(linkBaseUrl)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${pages[kind]}`
  url.searchParams.set('token', token)
  if (organismId !== '') url.searchParams.set('organism', organismId)
  return url.href
}

/**
 * Rounded to the nearest minute: a mail is written shortly after its link is created, and 15 minutes must not
 * read as 14.
 */
function lifetime({ expiresAtMs }: LinkMail, { nowMs }: MailContext): string {
  const leftMs = Math.round((expiresAtMs - nowMs) / 60_000) * 60_000
  return `The link can be used once, within ${leftMs < 60_000 ? 'less than a minute' : durationText(leftMs)}.`
}

function asText({ before, link, after }: Letter): string {
  return `${[before, link.url, ...after].join('\n\n')}\n`
}

function asHtml({ subject, before, link, after }: Letter): string {
  const paragraphs = [
    escapeHtml(before),
    `<a href="${escapeHtml(link.url)}">${escapeHtml(link.label)}</a>`,
    ...after.map(escapeHtml),
  ]
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>
<body>
${paragraphs.map((inner) => `<p>${inner}</p>\n`).join('')}</body>
</html>
`
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}
