import { assert } from '../base/assert.js'
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
  /**
   * The id that this server gave the request: what the caller sends as one could be an e-mail. Absent where the record
   * stands for more than one request.
   */
  requestId?: string | undefined
  /** Of a record that stands for more than one time, or of `auth/passkey_removed`: how many. */
  count?: number | undefined
}

/** Characters kept of texts that come from outside. */
const charsMax = { ip: 64, userAgent: 256, requestId: 128, id: 64 } as const

/**
 * The canonical body of an audit record. It takes the named members only, so that no password, token, hash or e-mail
 * gets onto a strand as a member of a wider object.
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
    user_agent: clipped(withoutSecrets(event.userAgent), charsMax.userAgent),
    outcome: event.outcome,
    request_id: clipped(event.requestId, charsMax.requestId),
    ...(event.count === undefined ? {} : { count: event.count }),
  })
}

/** What parts the words of a user agent (RFC 9110, 10.1.5): in none of them can an address go on. */
const partition = /([\s()<>;,"']+)/

/** An at sign, as it is or as mail programs, forms and pages write it. */
const atSign = /[@\uff20\ufe6b]|%40|&#0*64|&#x0*40|&commat/i

/** As long as the shortest token of this server, in base64url. */
const tokenLike = /[\w-]{40,}/g

const REMOVED = '[removed]'

/**
 * A user agent without what could be an e-mail or a token in it: anyone can send any text as one, also somebody else's
 * address, and nothing on a strand is taken back.
 */
function withoutSecrets(userAgent: string | undefined): string | undefined {
  return userAgent
    ?.split(partition)
    .map((word) => (atSign.test(word) ? REMOVED : word))
    .join('')
    .replace(tokenLike, REMOVED)
}

/** The first characters of a text, lone surrogates replaced: a record's body holds none. */
function clipped(text: string | undefined, max: number): string | null {
  if (text === undefined) return null
  const characters = Array.from(text.slice(0, max * 2)).slice(0, max)
  return characters.join('').replace(/\p{Surrogate}/gu, '\u{fffd}')
}
