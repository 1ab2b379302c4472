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

export interface AuditEvent {
  userId?: string | undefined
  /** The result of `emailHmac`, 64 hex digits. */
  emailHmac?: string | undefined
  sid?: string | undefined
  ip?: string | undefined
  userAgent?: string | undefined
  outcome: 'success' | 'failure'
  /**
   * The request id that this server generated; one from the caller could be an e-mail. Absent if the record
   * combines several requests.
   */
  requestId?: string | undefined
  /** The number of combined events, or of the passkeys or sessions that were ended. */
  count?: number | undefined
  /** For `auth/login_failed`. The reason is absent if the record combines failures with different reasons. */
  failure?: (Pick<SignInFailure, 'method'> & Partial<SignInFailure>) | undefined
}

/** Characters of external texts that are recorded. */
const charsMax = { ip: 64, userAgent: 256, requestId: 128, id: 64 } as const

/**
 * The canonical body of an audit record. It copies the known members only, so that no password, token, hash
 * or e-mail reaches a strand as an extra member.
 * @throws Error if `emailHmac` is not 64 hex digits
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

/**
 * Separators between the words of a user agent (RFC 9110, 10.1.5), which an e-mail address cannot contain.
 */
const separators = /([\s()<>;,"']+)/

/** An at sign, plain or in the encodings of mail programs, forms and pages. */
const atSign = /[@\uff20\ufe6b]|%40|&#0*64|&#x0*40|&commat/i

/** Base64url text that is at least as long as the shortest token of this server. */
const tokenLike = /[\w-]{40,}/g

const REMOVED = '[removed]'

/**
 * Removes texts that look like an e-mail or a token from a user agent. A client can send any text, even the
 * address of another person, and a record cannot be changed later.
 */
function withoutSecrets(userAgent: string | undefined): string | undefined {
  return userAgent
    ?.split(separators)
    .map((word) => (atSign.test(word) ? REMOVED : word))
    .join('')
    .replace(tokenLike, REMOVED)
}

/** Truncates a text and replaces lone surrogates, which a body cannot contain. */
function clipped(text: string | undefined, max: number): string | null {
  if (text === undefined) return null
  const characters = Array.from(text.slice(0, max * 2)).slice(0, max)
  return characters.join('').replace(/\p{Surrogate}/gu, '\u{fffd}')
}
