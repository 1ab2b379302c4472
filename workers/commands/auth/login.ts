import { lockedRefusal } from '../../../src/auth/lockout.js'
import type { SignInMethod } from '../../../src/auth/sign-in-failure.js'
import type { UserRow } from '../../../src/auth/user.js'
import { type Refusal, refuse } from '../../../src/base/errors.js'
import type { AuthAnswer, ChangeOf, LookupOf } from '../../../src/protocol/auth-messages.js'
import { recordFailure } from '../../auth/failures.js'
import { clearFailures, countFailure, guesserOf, lockoutOf } from '../../auth/lockouts.js'
import { passkeyById } from '../../auth/passkeys.js'
import { signIn } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'
import { putUser, userByEmail, userById } from '../../auth/users.js'

/** The same answer for a wrong password, an unknown e-mail and an account without a password. */
export const invalidCredentials = refuse('invalid_credentials', 'The e-mail or the password is wrong')

/** 403 for a correct password without a verified e-mail, if verification is required. */
const notVerified = refuse(
  'email_not_verified',
  'The e-mail is not verified: open the link in the mail, then sign in again',
)

/** Refuses a sign-in that is valid except that the e-mail is not verified. */
export function unverified(namespace: NamespaceState, user: UserRow, method: SignInMethod): () => Refusal {
  recordFailure(namespace, { user }, { method, reason: 'not_verified' })
  return () => notVerified
}

/** Records a failed sign-in; the front has answered the client. */
export function signInFailed(namespace: NamespaceState, change: ChangeOf<'signInFailed'>): ChangeResult {
  const { email, passkeyId, userId, method, reason } = change
  const owner = passkeyId === undefined ? userId : passkeyById(namespace, passkeyId)?.userId
  const ownerUser = owner === undefined ? undefined : userById(namespace, owner)
  const user = email === undefined ? ownerUser : userByEmail(namespace, email)
  recordFailure(namespace, { key: email ?? passkeyId, user }, { method, reason })
  return { kind: 'done' }
}

/** The state that decides a login by password. */
export function loginState(namespace: NamespaceState, { email, device }: LookupOf<'loginState'>): AuthAnswer {
  const user = userByEmail(namespace, email)
  const guesser = guesserOf(namespace, { email, user, device })
  const passwordHash = user?.passwordHash
  return {
    kind: 'loginState',
    ...lockoutOf(namespace, guesser),
    ...(guesser.deviceId !== undefined && { device: true }),
    ...(passwordHash !== undefined && { passwordHash }),
  }
}

/** Signs in after a correct password, unless the account has changed or was locked since the lookup. */
export function loginSucceeded(namespace: NamespaceState, change: ChangeOf<'loginSucceeded'>): ChangeResult {
  const { email, passwordHash, rehashed, device } = change
  const user = userByEmail(namespace, email)
  const guesser = guesserOf(namespace, { email, user, device })
  const lockout = lockoutOf(namespace, guesser)
  if (lockout.lockedForMs > 0) return lockedRefusal(lockout.lockedForMs)
  if (user === undefined || user.passwordHash !== passwordHash) return invalidCredentials
  const { userId } = user
  clearFailures(namespace, guesser)
  const current = rehashed === undefined ? user : { ...user, passwordHash: rehashed }
  if (namespace.state.auth.requireEmailVerify && !user.verified) {
    if (rehashed !== undefined) putUser(namespace, current)
    return unverified(namespace, user, 'password')
  }
  const signedIn = signIn(namespace, current, ['pwd'])
  namespace.audit('auth/login', { userId, email, sid: signedIn.session.sid })
  return signedIn
}

/** Counts a failed login by password. */
export function loginFailed(
  namespace: NamespaceState,
  { email, device }: ChangeOf<'loginFailed'>,
): ChangeResult {
  countFailure(namespace, guesserOf(namespace, { email, user: userByEmail(namespace, email), device }))
  return () => invalidCredentials
}
