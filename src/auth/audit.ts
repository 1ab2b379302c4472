import { assert } from '../base/assert.js'
import type { SignInFailure } from './sign-in-failure.js'
import { canonicalJson } from '../strand/json.js'

/** The types of audit records of a namespace (docs/adr/0010-auth-state.md). */
export const auditTypes = [
  'auth/register',
  'auth/login',
  'auth/login_failed',
  'auth/locked',
  'auth/logout',
  'auth/refresh_reused',
  'auth/token_revoked',
  'auth/email_verified',
  'auth/magic_link_sent',
  'auth/magic_link_login',
  'auth/oauth_login',
  'auth/passkey_registered',
  'auth/passkey_login',
  'auth/passkey_removed',
  'auth/password_changed',
  'auth/app_metadata_updated',
  'auth/user_metadata_updated',
  'auth/user_deleted',
  'auth/unlocked',
  'auth/sessions_ended',
  'auth/namespace_initialised',
  'auth/key_rotated',
] as const

export type AuditType = (typeof auditTypes)[number]

/** What an audit record says. Whatever is not known is left out. */
export interface AuditEvent {
  userId?: string | undefined
  /** As `emailHmac` gives it, 64 hex digits. */
  emailHmac?: string | undefined
  sid?: string | undefined
  ip?: string | undefined
  userAgent?: string | undefined
  outcome: 'success' | 'failure'
  /**
   * The id that this server gave the request; one that the caller sent could be an e-mail. Absent where the record
   * stands for more than one request.
   */
  requestId?: string | undefined
  /** How many events a combined record stands for, or how many passkeys or sessions one is about that ends them. */
  count?: number | undefined
  /** Of `auth/login_failed`. The reason is absent where the failures that it stands for have several. */
  failure?: (Pick<SignInFailure, 'method'> & Partial<SignInFailure>) | undefined
}

/** How many characters are kept of texts that come from outside. */
const charsMax = { ip: 64, userAgent: 256, requestId: 128, id: 64 } as const

/**
 * The canonical body of an audit record. It takes the named members only, so that no password, token, hash or e-mail
 * gets onto a strand as a member of a wider object.
 * @throws Error when `emailHmac` is not 64 hex digits
 */
export function auditBody(event: AuditEvent): string {
  const { emailHmac } = event
  assert(emailHmac === undefined || /^[0-9a-f]{64}$/.test(emailHmac), 'an e-mail is audited as its HMAC')
  return canonicalJson({
    user_id: clipped(event.userId, charsMax.id),
    email_hmac: emailHmac ?? null,
    sid: clipped(event.sid, charsMax.id),
    ip: clipped(event.ip, charsMax.ip),
    user_agent: clipped(withoutSecrets(event.userAgent), charsMax.userAgent),
    outcome: event.outcome,
    request_id: clipped(event.requestId, charsMax.requestId),
    ...(event.count !== undefined && { count: event.count }),
    ...(event.failure !== undefined && {
      method: event.failure.method,
      reason: event.failure.reason ?? null,
    }),
  })
}

/** Separators between the words of a user agent (RFC 9110, 10.1.5): no e-mail address continues across one. */
const partition = /([\s()<>;,"']+)/

/** An at sign, plain or in the forms that mail programs, forms and pages write. */
const atSign = /[@\uff20\ufe6b]|%40|&#0*64|&#x0*40|&commat/i

/** Base64url text at least as long as the shortest token of this server. */
const tokenLike = /[\w-]{40,}/g

const REMOVED = '[removed]'

/**
 * A user agent without anything that could be an e-mail or a token: anyone can send any text as user agent, even
 * somebody else's address, and nothing can be removed from a strand.
 */
function withoutSecrets(userAgent: string | undefined): string | undefined {
  return userAgent
    ?.split(partition)
    .map((word) => (atSign.test(word) ? REMOVED : word))
    .join('')
    .replace(tokenLike, REMOVED)
}

/** The first characters of a text, lone surrogates replaced, since a record's body cannot contain any. */
function clipped(text: string | undefined, max: number): string | null {
  if (text === undefined) return null
  const characters = Array.from(text.slice(0, max * 2)).slice(0, max)
  return characters.join('').replace(/\p{Surrogate}/gu, '\u{fffd}')
}
