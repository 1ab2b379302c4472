import { oauthProviderNames } from '../../../src/auth/oauth.js'
import { signInMethods } from '../../../src/auth/sign-in-failure.js'
import {
  fields,
  isFlag,
  isText,
  listOf,
  members,
  oneOf,
  optional,
  type Check,
} from '../../../src/base/shape.js'
import type { AuthKind, AuthRows } from './auth-rows.js'
import { isCounts, isHash, isKeyNumber, isObject } from './row-shape.js'

/*
 * The shapes of the rows of auth state. Members that earlier versions did not write are optional.
 */

const isTrue: Check<true> = (value): value is true => value === true

const lockout = {
  failures: isKeyNumber,
  lockedUntilMs: isKeyNumber,
  lastFailureAtMs: isKeyNumber,
  reportedAtMs: isKeyNumber,
  unreported: isKeyNumber,
}

function byMethod<Found>(check: Check<Found>): Check<Partial<Record<string, Found>>> {
  const known: ReadonlySet<string> = new Set(signInMethods)
  return (value): value is Partial<Record<string, Found>> =>
    isObject(value) && Object.entries(value).every(([name, one]) => known.has(name) && check(one))
}

const isFailures = byMethod(fields({ reportedAtMs: isKeyNumber, unreported: isKeyNumber, reason: isText }))

/** The check of each kind of row. */
export const authRowChecks: { [Kind in AuthKind]: Check<AuthRows[Kind]> } = {
  user: members<AuthRows['user']>({
    userId: isText,
    email: isText,
    verified: isFlag,
    mailboxProven: isFlag,
    passwordHash: optional(isText),
    devicesSinceMs: optional(isKeyNumber),
    appMetadata: isObject,
    userMetadata: isObject,
    createdAtMs: isKeyNumber,
    lastLoginAtMs: optional(isKeyNumber),
    reachedBy: optional(listOf(isText)),
    metadataBy: optional(isText),
  }),
  email: isText,
  session: members<AuthRows['session']>({
    sid: isText,
    userId: isText,
    amr: listOf(isText),
    createdAtMs: isKeyNumber,
    lastUsedAtMs: isKeyNumber,
    expiresAtMs: isKeyNumber,
    generation: isKeyNumber,
    rotatedAtMs: isKeyNumber,
    earlierExchangesMs: optional(listOf(isKeyNumber)),
    tokensEndAtMs: optional(isKeyNumber),
  }),
  'user-session': isTrue,
  link: members<AuthRows['link']>({
    purpose: oneOf('magicLink', 'verifyEmail', 'passwordReset'),
    email: isText,
    mailed: isFlag,
    expiresAtMs: isKeyNumber,
    line: optional(isText),
  }),
  'email-link': isTrue,
  lockout: members<AuthRows['lockout']>(lockout),
  'device-lockout': members<AuthRows['device-lockout']>(lockout),
  'sign-in-failures': (value): value is AuthRows['sign-in-failures'] => isFailures(value),
  'mail-room': (value): value is AuthRows['mail-room'] => isCounts(value),
  untold: (value): value is AuthRows['untold'] => isPendingCounts(value),
  decoy: isText,
  'unsent-mail': isText,
  'oauth-state': members<AuthRows['oauth-state']>({
    provider: oneOf(...oauthProviderNames),
    browserHash: isHash,
    redirectUri: isText,
    mode: oneOf('query', 'fragment'),
    expiresAtMs: isKeyNumber,
  }),
  identity: isText,
  'user-identity': isTrue,
  passkey: members<AuthRows['passkey']>({
    id: isText,
    publicKey: isText,
    counter: isKeyNumber,
    backupEligible: isFlag,
    transports: listOf(isText),
    userId: isText,
    createdAtMs: isKeyNumber,
    lastUsedAtMs: optional(isKeyNumber),
  }),
  'user-passkey': isTrue,
  'passkey-session': members<AuthRows['passkey-session']>({
    ceremony: oneOf('register', 'authenticate'),
    challenge: isText,
    named: isFlag,
    email: optional(isText),
    userId: optional(isText),
    expiresAtMs: isKeyNumber,
  }),
  keys: members<AuthRows['keys']>({
    kind: oneOf('keyEpochs'),
    epoch: isKeyNumber,
    retired: listOf(fields({ epoch: isKeyNumber, untilMs: isKeyNumber })),
  }),
}

const isPendingCounts = fields({
  dueAtMs: isKeyNumber,
  counts: isCounts,
  failures: optional(byMethod(fields({ count: isKeyNumber, reason: optional(isText) }))),
  ip: optional(isText),
  userAgent: optional(isText),
})

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
