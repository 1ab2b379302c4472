import type { AuditType } from '../../src/auth/audit.js'
import type { LockoutState } from '../../src/auth/lockout.js'
import type { OauthStateRow } from '../../src/auth/oauth.js'
import type { AuthMail } from '../../src/auth/outbox-message.js'
import type { Ceremony, PasskeyRow } from '../../src/auth/passkey.js'
import type { SessionRow } from '../../src/auth/session.js'
import type { UserRow } from '../../src/auth/user.js'
import type { KeyEpochs, LinkPurpose } from '../../src/protocol/auth-messages.js'

/** A link that works once, found by the SHA-256 of its token. */
export interface LinkRow {
  purpose: LinkPurpose
  email: string
  /** Whether the token went out by mail, so that who brings it has shown to receive mail there. */
  mailed: boolean
  expiresAtMs: number
}

/** The lockout of one e-mail or one device, with the failures that no audit record has told of yet. */
export interface LockoutRow extends LockoutState {
  /** When `auth/login_failed` was last written, Unix milliseconds. */
  reportedAtMs: number
  unreported: number
}

/** When a mailbox has all of its room back for the mails of each kind, Unix milliseconds. */
export type RoomsRow = Partial<Record<AuthMail['kind'], number>>

/** What strangers' e-mails are counted for. */
export type CountedType = Extract<
  AuditType,
  'auth/magic_link_sent' | 'auth/login_failed' | 'auth/locked' | 'auth/register'
>

/** What is counted and not told of yet, of one namespace. */
export interface UntoldRow {
  /** When it is to be told of, Unix milliseconds. */
  dueAtMs: number
  counts: Partial<Record<CountedType, number>>
  /** Where it came from, as long as that is one place. */
  ip?: string
  userAgent?: string
}

/** A ceremony that has begun, found by the SHA-256 of its session token. */
export interface PasskeySessionRow {
  ceremony: Ceremony
  challenge: string
  /** Whether it is for one user only; always so for a registration. */
  named: boolean
  /** That user; absent for an e-mail that no account has, with which nothing can be done. */
  userId?: string
  expiresAtMs: number
}

/** What the rows of an auth namespace hold, by what they are about. */
export interface AuthRows {
  user: UserRow
  /** Id of the user. */
  email: string
  session: SessionRow
  'user-session': true
  link: LinkRow
  'email-link': true
  lockout: LockoutRow
  'device-lockout': LockoutRow
  'mail-room': RoomsRow
  untold: UntoldRow
  /** Bytes that say nothing, base64. */
  decoy: string
  'unsent-mail': string
  'oauth-state': OauthStateRow
  /** Id of the user. */
  identity: string
  'user-identity': true
  passkey: PasskeyRow
  'user-passkey': true
  'passkey-session': PasskeySessionRow
  keys: KeyEpochs
}

/** What a row of a namespace is about. */
export type AuthKind = keyof AuthRows
