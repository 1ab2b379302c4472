import type { AuditType } from '../../../src/auth/audit.js'
import type { LockoutState } from '../../../src/auth/lockout.js'
import type { OauthStateRow } from '../../../src/auth/oauth.js'
import type { AuthMail } from '../../../src/auth/outbox-message.js'
import type { Ceremony, PasskeyRow } from '../../../src/auth/passkey.js'
import type { SessionRow } from '../../../src/auth/session.js'
import type { SignInMethod, SignInReason } from '../../../src/auth/sign-in-failure.js'
import type { UserRow } from '../../../src/auth/user.js'
import type { KeyEpochs, LinkPurpose } from '../../../src/protocol/auth-messages.js'

/** A link that works once, found by the SHA-256 of its token. */
export interface LinkRow {
  purpose: LinkPurpose
  email: string
  /** Whether the token went out by mail: whoever brings it then receives mail there. */
  mailed: boolean
  expiresAtMs: number
  /** The line of the key that was given the token in an answer. */
  line?: string
}

/** The lockout of one e-mail or one device, with the failures that no audit record counts yet. */
export interface LockoutRow extends LockoutState {
  /** When `auth/login_failed` was last written, Unix milliseconds. */
  reportedAtMs: number
  unreported: number
}

/** When the limit of a mailbox for each kind of mail is full again, Unix milliseconds. */
export type RoomsRow = Partial<Record<AuthMail['kind'], number>>

/** The types of audit record that are counted for e-mails of strangers. */
export type CountedType = Extract<
  AuditType,
  'auth/magic_link_sent' | 'auth/login_failed' | 'auth/locked' | 'auth/register'
>

/** Failed sign-ins of an e-mail or passkey, by their method, with those that no audit record counts yet. */
export type FailuresRow = Partial<
  Record<SignInMethod, { reportedAtMs: number; unreported: number; reason: SignInReason }>
>

/** The counts of one namespace that no audit record contains yet. */
export interface UntoldRow {
  /** When the record of it is due, Unix milliseconds. */
  dueAtMs: number
  counts: Partial<Record<CountedType, number>>
  /** `auth/login_failed` by method; the reason as long as there was only one. */
  failures?: Partial<Record<SignInMethod, { count: number; reason?: SignInReason }>>
  /** The address it came from, as long as there was only one. */
  ip?: string
  userAgent?: string
}

/** A passkey ceremony that has begun, found by the SHA-256 of its session token. */
export interface PasskeySessionRow {
  ceremony: Ceremony
  challenge: string
  /** Whether it is for one user only; always so for a registration. */
  named: boolean
  /** The e-mail that an authentication began with. */
  email?: string
  /** That user; absent for an e-mail without an account, whose ceremony cannot succeed. */
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
  'mail-room': RoomsRow
  untold: UntoldRow
  /** Meaningless bytes, base64. */
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
