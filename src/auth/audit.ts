import { assert } from '../base/assert.js'
import { canonicalJson } from '../strand/json.js'

/** The types of audit records (spec.md, Events; contract.md 6.11). */
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
  'auth/namespace_initialised',
  'auth/key_rotated',
] as const

export type AuditType = (typeof auditTypes)[number]

/** What an audit record tells. What is not known is left out. */
export interface AuditEvent {
  userId?: string | undefined
  /** As `emailHmac` gives it, 64 hex digits. */
  emailHmac?: string | undefined
  sid?: string | undefined
  ip?: string | undefined
  userAgent?: string | undefined
  outcome: 'success' | 'failure'
  requestId: string
  /** How many failures `auth/login_failed` stands for, or how many passkeys `auth/passkey_removed`. */
  count?: number | undefined
}

/** Characters kept of texts that come from outside. */
const charsMax = { ip: 64, userAgent: 256, requestId: 128, id: 64 } as const

/**
 * The canonical body of an audit record (contract.md 6.11). It takes the named members only, so that no password,
 * token, hash or e-mail can get onto a strand by way of a wider object.
 * @throws Error when `emailHmac` is none
 */
export function auditBody(event: AuditEvent): string {
  const { emailHmac } = event
  assert(emailHmac === undefined || /^[0-9a-f]{64}$/.test(emailHmac), 'an e-mail is audited as its HMAC')
  return canonicalJson({
    user_id: clipped(event.userId, charsMax.id),
    email_hmac: emailHmac ?? null,
    sid: clipped(event.sid, charsMax.id),
    ip: clipped(event.ip, charsMax.ip),
    user_agent: clipped(event.userAgent, charsMax.userAgent),
    outcome: event.outcome,
    request_id: clipped(event.requestId, charsMax.requestId),
    ...(event.count === undefined ? {} : { count: event.count }),
  })
}

/** The first characters of a text, lone surrogates replaced: a record's body holds none. */
function clipped(text: string | undefined, max: number): string | null {
  if (text === undefined) return null
  const characters = Array.from(text.slice(0, max * 2)).slice(0, max)
  return characters.join('').replace(/\p{Surrogate}/gu, '\u{fffd}')
}
