import type { AuditType } from '../../../src/auth/audit.js'
import { isOauthStateRow } from '../../../src/auth/oauth.js'
import type { AuthMail } from '../../../src/auth/outbox-message.js'
import { type Ceremony, isPasskeyRow } from '../../../src/auth/passkey.js'
import { isSessionRow } from '../../../src/auth/session.js'
import { signInMethods, type SignInMethod, type SignInReason } from '../../../src/auth/sign-in-failure.js'
import { isUserRow } from '../../../src/auth/user.js'
import {
  type Check,
  type Checked,
  isCounts,
  isFlag,
  isKeyNumber,
  isObject,
  isText,
  isTrue,
  listOf,
  oneOf,
  optional,
  fields,
} from '../../../src/base/shape.js'
import type { LinkPurpose } from '../../../src/protocol/auth-messages.js'

/*
 * The rows of auth state. Members that earlier versions did not write are optional.
 */

/** A single-use link. Its key is the SHA-256 of its token. */
const isLinkRow = fields({
  purpose: oneOf<LinkPurpose>('magicLink', 'verifyEmail', 'passwordReset'),
  email: isText,
  /** Whether the token was sent by mail, so that it proves control of the mailbox. */
  mailed: isFlag,
  expiresAtMs: isKeyNumber,
  /** The lineage of the key that received the token in an answer. */
  line: optional(isText),
})

/** The lockout of one e-mail or one device, with the failures that are not in an audit record yet. */
const isLockoutRow = fields({
  failures: isKeyNumber,
  lockedUntilMs: isKeyNumber,
  lastFailureAtMs: isKeyNumber,
  /** When `auth/login_failed` was last written, Unix milliseconds. */
  reportedAtMs: isKeyNumber,
  unreported: isKeyNumber,
})

/** The types of audit record that are only counted for unknown e-mails. */
export type CountedType = Extract<
  AuditType,
  'auth/magic_link_sent' | 'auth/login_failed' | 'auth/locked' | 'auth/register'
>

const isReason = (value: unknown): value is SignInReason => isText(value)

function byMethod<Found>(check: Check<Found>): Check<Partial<Record<SignInMethod, Found>>> {
  const known: ReadonlySet<string> = new Set(signInMethods)
  return (value): value is Partial<Record<SignInMethod, Found>> =>
    isObject(value) && Object.entries(value).every(([name, one]) => known.has(name) && check(one))
}

/** Numbers by some of the names. */
function countsBy<Name extends string>(): Check<Partial<Record<Name, number>>> {
  return (value): value is Partial<Record<Name, number>> => isCounts(value)
}

/** The counts of one namespace that are not in an audit record yet. */
const isPendingCounts = fields({
  /** When their audit record is due, Unix milliseconds. */
  dueAtMs: isKeyNumber,
  counts: countsBy<CountedType>(),
  /** `auth/login_failed` by method; with the reason if it was the same for all. */
  failures: optional(byMethod(fields({ count: isKeyNumber, reason: optional(isReason) }))),
  /** The address of the clients if it was the same for all. */
  ip: optional(isText),
  userAgent: optional(isText),
})

/** A started passkey ceremony. Its key is the SHA-256 of its session token. */
const isPasskeySession = fields({
  ceremony: oneOf<Ceremony>('register', 'authenticate'),
  challenge: isText,
  /** Whether it is for one user only; always true for a registration. */
  named: isFlag,
  /** The e-mail with which an authentication began. */
  email: optional(isText),
  /** The user; absent for an e-mail without an account, whose ceremony cannot succeed. */
  userId: optional(isText),
  expiresAtMs: isKeyNumber,
})

const checks = {
  user: isUserRow,
  /** Id of the user. */
  email: isText,
  session: isSessionRow,
  'user-session': isTrue,
  link: isLinkRow,
  'email-link': isTrue,
  lockout: isLockoutRow,
  'device-lockout': isLockoutRow,
  /** Failed sign-ins of an e-mail or passkey, with the failures that are not in an audit record yet. */
  'sign-in-failures': byMethod(
    fields({ reportedAtMs: isKeyNumber, unreported: isKeyNumber, reason: isReason }),
  ),
  /** When the quota of a mailbox is completely refilled, by kind of mail, Unix milliseconds. */
  'mail-room': countsBy<AuthMail['kind']>(),
  untold: isPendingCounts,
  /** Random bytes, base64. */
  decoy: isText,
  'unsent-mail': isText,
  'oauth-state': isOauthStateRow,
  /** Id of the user. */
  identity: isText,
  'user-identity': isTrue,
  passkey: isPasskeyRow,
  'user-passkey': isTrue,
  'passkey-session': isPasskeySession,
  keys: fields({
    kind: oneOf('keyEpochs'),
    epoch: isKeyNumber,
    retired: listOf(fields({ epoch: isKeyNumber, untilMs: isKeyNumber })),
  }),
}

export type AuthKind = keyof typeof checks

export type AuthRows = { [Kind in AuthKind]: Checked<(typeof checks)[Kind]> }

export const authRowChecks: { [Kind in AuthKind]: Check<AuthRows[Kind]> } = checks

export function isAuthKind(text: string): text is AuthKind {
  return Object.hasOwn(authRowChecks, text)
}

/** The id in a row that has one, which must be that of its key. */
export function idIn(row: AuthRows[AuthKind]): string | undefined {
  if (typeof row !== 'object') return undefined
  if ('sid' in row) return row.sid
  if ('publicKey' in row) return row.id
  return 'passwordHash' in row || 'mailboxProven' in row ? row.userId : undefined
}
