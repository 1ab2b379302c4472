import { counterGrows, passkeyAmr, decoyIds, decoyKey, isDecoy } from '../../../src/auth/passkey.js'
import type { SignInReason } from '../../../src/auth/sign-in-failure.js'
import type { UserRow } from '../../../src/auth/user.js'
import { refuse, type Refusal } from '../../../src/base/errors.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { AuthAnswer, ChangeOf, LookupOf } from '../../../src/protocol/auth-messages.js'
import { recordFailure } from '../../auth/failures.js'
import { putMail } from '../../auth/outbox.js'
import {
  dropPasskey,
  passkeyById,
  passkeysOf,
  putPasskey,
  putPasskeySession,
  takePasskeySession,
} from '../../auth/passkeys.js'
import { sessionById, signIn } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'
import { userByEmail, userById, withoutPassword } from '../../auth/users.js'
import { unverified } from './login.js'
import { noSuchUser, sessionOver } from './me.js'

/** The same answer for every fault of a passkey or its ceremony. */
const passkeyFailed = refuse('passkey_failed', 'The passkey could not be verified: start again')

const alreadyRegistered = refuse('passkey_exists', 'You have already registered this passkey')

/** The passkeys of a user, oldest first. */
export function passkeyList(namespace: NamespaceState, { userId }: LookupOf<'passkeys'>): AuthAnswer {
  return { kind: 'passkeys', passkeys: passkeysOf(namespace, userId) }
}

/**
 * Begins the registration of a passkey; 401 reauthentication_required if the sign-in is too old, 413 if the
 * user has the maximum number of passkeys.
 */
export function passkeyRegistration(
  namespace: NamespaceState,
  change: ChangeOf<'passkeyRegistration'>,
): ChangeResult {
  const { userId, sid, session } = change
  const user = userById(namespace, userId)
  if (user === undefined) return noSuchUser
  const stale = staleRefusal(namespace, { userId, sid }, limits.reauthenticationSecs)
  if (stale !== undefined) return stale
  const passkeys = passkeysOf(namespace, userId)
  if (passkeys.length >= limits.passkeysPerUserMax) return tooMany
  putPasskeySession(namespace, session, { ceremony: 'register', named: true, userId })
  return { kind: 'passkeyRegistration', user: withoutPassword(user), passkeys }
}

/**
 * The refusal for a session whose sign-in is too old to add a passkey: a stolen token must not give permanent
 * access. A refresh does not count as a sign-in.
 */
function staleRefusal(
  namespace: NamespaceState,
  { userId, sid }: { userId: string; sid: string },
  agoSecsMax: number,
): Refusal | undefined {
  const session = sessionById(namespace, sid)
  // The first proof of the mailbox may have ended the session while the registration was verified.
  if (session?.userId !== userId) return sessionOver
  return namespace.nowMs - session.createdAtMs > agoSecsMax * 1_000 ? signInAgain : undefined
}

const signInAgain = refuse(
  'reauthentication_required',
  `The sign-in is older than ${limits.reauthenticationSecs / 60} minutes: sign in again`,
)

const tooMany = refuse(
  'too_large',
  `The user has ${limits.passkeysPerUserMax} passkeys, which is the maximum: remove one first`,
)

/**
 * Begins an authentication. The list for an e-mail always has the same length, and as much is read, computed
 * and written whether or not there is an account (docs/adr/0016-passkeys.md).
 */
export function passkeyAuthentication(
  namespace: NamespaceState,
  change: ChangeOf<'passkeyAuthentication'>,
): ChangeResult {
  const { email, session } = change
  if (email === undefined) {
    putPasskeySession(namespace, session, { ceremony: 'authenticate', named: false })
    return { kind: 'passkeyAuthentication' }
  }
  const userId = userByEmail(namespace, email)?.userId
  const count = limits.passkeysPerUserMax
  const decoys = decoyIds(decoyKey(namespace.state.masterSeed), { namespace: namespace.id, email }, count)
  const real = passkeysOf(namespace, userId ?? '').map(({ id }) => id)
  putPasskeySession(namespace, session, {
    ceremony: 'authenticate',
    named: true,
    email,
    ...(userId !== undefined && { userId }),
  })
  // The real ids come first, so that an authenticator that tries one after another finds them early.
  return { kind: 'passkeyAuthentication', allowed: [...real, ...decoys].slice(0, count) }
}

/**
 * Removes a passkey session and returns the challenge and the passkey for the check of the authenticator's
 * answer.
 */
export function passkeySessionTake(
  namespace: NamespaceState,
  change: ChangeOf<'passkeySessionTake'>,
): ChangeResult {
  const { hash, ceremony, userId, passkeyId } = change
  const session = takePasskeySession(namespace, hash)
  const fail = (reason: SignInReason) => {
    if (userId !== undefined) return registrationFailed(namespace, userById(namespace, userId), reason)
    const key = session?.email
    const user = key === undefined ? undefined : userByEmail(namespace, key)
    recordFailure(namespace, { key, user }, { method: 'passkey', reason })
    return () => passkeyFailed
  }
  if (session === undefined || session.ceremony !== ceremony) return fail('unknown_challenge')
  if (session.expiresAtMs <= namespace.nowMs) return fail('expired_challenge')
  if (ceremony === 'register' && session.userId !== userId) return fail('other_user')
  const { challenge, named, email } = session
  const found = passkeyId === undefined ? undefined : passkeyById(namespace, passkeyId)
  const matches = found !== undefined && (!named || found.userId === session.userId)
  return {
    kind: 'passkeySession',
    challenge,
    named,
    ...(email !== undefined && { email }),
    ...(matches && { passkey: found }),
  }
}

function registrationFailed(
  namespace: NamespaceState,
  user: UserRow | undefined,
  reason: SignInReason,
): () => Refusal {
  recordFailure(namespace, { user }, { method: 'passkey_registration', reason })
  return () => (reason === 'already_registered' ? alreadyRegistered : passkeyFailed)
}

/** Stores a passkey whose registration was verified; an id belongs to one user of the namespace. */
export function passkeyRegister(
  namespace: NamespaceState,
  change: ChangeOf<'passkeyRegister'>,
): ChangeResult {
  const { userId, sid, passkey, notify } = change
  const user = userById(namespace, userId)
  if (user === undefined) return sessionOver
  // The sign-in was recent enough at the start of the ceremony, whose duration is added.
  const agoSecsMax = limits.reauthenticationSecs + limits.passkeySessionSecs
  const stale = staleRefusal(namespace, { userId, sid }, agoSecsMax)
  if (stale !== undefined) return stale
  const owner = passkeyById(namespace, passkey.id)?.userId
  if (owner === userId) return registrationFailed(namespace, user, 'already_registered')
  // The same answer, so that it does not reveal which ids are real.
  if (owner !== undefined || isDecoy(decoyKey(namespace.state.masterSeed), namespace.id, passkey.id))
    return registrationFailed(namespace, user, 'other_user')
  if (passkeysOf(namespace, userId).length >= limits.passkeysPerUserMax) return tooMany
  putPasskey(namespace, { ...passkey, userId, createdAtMs: namespace.nowMs })
  namespace.audit('auth/passkey_registered', { userId, email: user.email, sid })
  if (notify) putMail(namespace, { kind: 'passkeyRegistered', to: user.email, organismId: namespace.id })
  return { kind: 'done' }
}

/**
 * Signs in by a passkey whose assertion was verified, unless the passkey has changed since. A counter that
 * does not grow is recorded as a failed sign-in, which does not count for lockouts.
 */
export function passkeyLogin(namespace: NamespaceState, change: ChangeOf<'passkeyLogin'>): ChangeResult {
  const { passkeyId, publicKey, assertion } = change
  const passkey = passkeyById(namespace, passkeyId)
  const user = passkey === undefined ? undefined : userById(namespace, passkey.userId)
  if (passkey?.publicKey !== publicKey || user === undefined) {
    recordFailure(namespace, { key: passkeyId, user }, { method: 'passkey', reason: 'unknown_passkey' })
    return () => passkeyFailed
  }
  const { userId, email } = user
  const sameKind = passkey.backupEligible === assertion.backupEligible
  if (!sameKind || !counterGrows(passkey.counter, assertion.counter)) {
    recordFailure(namespace, { user }, { method: 'passkey', reason: 'old_counter' })
    return () => passkeyFailed
  }
  putPasskey(namespace, { ...passkey, counter: assertion.counter, lastUsedAtMs: namespace.nowMs })
  if (namespace.state.auth.requireEmailVerify && !user.verified) return unverified(namespace, user, 'passkey')
  const signedIn = signIn(namespace, user, [...passkeyAmr])
  namespace.audit('auth/passkey_login', { userId, email, sid: signedIn.session.sid })
  return signedIn
}

/** Removes a passkey of the caller; 404 for any other passkey. */
export function passkeyRemove(namespace: NamespaceState, change: ChangeOf<'passkeyRemove'>): ChangeResult {
  const { userId, sid, passkeyId } = change
  const passkey = passkeyById(namespace, passkeyId)
  const user = userById(namespace, userId)
  if (passkey?.userId !== userId || user === undefined) {
    return refuse('not_found', 'You have no passkey with this id')
  }
  dropPasskey(namespace, passkey)
  namespace.audit('auth/passkey_removed', { userId, email: user.email, sid })
  return { kind: 'done' }
}
