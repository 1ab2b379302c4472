import type { AuditType } from '../../../src/auth/audit.js'
import type { LockoutState } from '../../../src/auth/lockout.js'
import type { OauthStateRow } from '../../../src/auth/oauth.js'
import type { AuthMail } from '../../../src/auth/outbox-message.js'
import type { Ceremony, PasskeyRow } from '../../../src/auth/passkey.js'
import type { SessionRow } from '../../../src/auth/session.js'
import type { SignInMethod, SignInReason } from '../../../src/auth/sign-in-failure.js'
import type { UserRow } from '../../../src/auth/user.js'
import type { KeyEpochs, LinkPurpose } from '../../../src/protocol/auth-messages.js'

/** A single-use link. Its key is the SHA-256 of its token. */
export interface LinkRow {
  purpose: LinkPurpose
  email: string
  /** Whether the token was sent by mail, so that it proves control of the mailbox. */
  mailed: boolean
  expiresAtMs: number
  /** The lineage of the key that received the token in an answer. */
  line?: string
}

/** The lockout of one e-mail or one device, with the failures that are not in an audit record yet. */
export interface LockoutRow extends LockoutState {
  /** When `auth/login_failed` was last written, Unix milliseconds. */
  reportedAtMs: number
  unreported: number
}

/** When the quota of a mailbox is completely refilled, by kind of mail, Unix milliseconds. */
export type MailQuotaRow = Partial<Record<AuthMail['kind'], number>>

/** The types of audit record that are only counted for unknown e-mails. */
export type CountedType = Extract<
  AuditType,
  'auth/magic_link_sent' | 'auth/login_failed' | 'auth/locked' | 'auth/register'
>

/**
 * Failed sign-ins of an e-mail or passkey, by method, with the failures that are not in an audit record yet.
 */
export type FailuresRow = Partial<
  Record<SignInMethod, { reportedAtMs: number; unreported: number; reason: SignInReason }>
>

/** The counts of one namespace that are not in an audit record yet. */
export interface PendingCountsRow {
  /** When their audit record is due, Unix milliseconds. */
  dueAtMs: number
  counts: Partial<Record<CountedType, number>>
  /** `auth/login_failed` by method; with the reason if it was the same for all. */
  failures?: Partial<Record<SignInMethod, { count: number; reason?: SignInReason }>>
  /** The address of the clients if it was the same for all. */
  ip?: string
  userAgent?: string
}

/** A started passkey ceremony. Its key is the SHA-256 of its session token. */
export interface PasskeySessionRow {
  ceremony: Ceremony
  challenge: string
  /** Whether it is for one user only; always true for a registration. */
  named: boolean
  /** The e-mail with which an authentication began. */
  email?: string
  /** The user; absent for an e-mail without an account, whose ceremony cannot succeed. */
  userId?: string
  expiresAtMs: number
}

/** The rows of an auth namespace, by their kind. */
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
  'sign-in-failures': FailuresRow
  'mail-room': MailQuotaRow
  untold: PendingCountsRow
  /** Random bytes, base64. */
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

/** The kind of a row. */
export type AuthKind = keyof AuthRows
