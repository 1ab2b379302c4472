import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { recordBadLink } from '../../auth/failures.js'
import { dropLinks, takeLink } from '../../auth/mailed-links.js'
import { clearFailures, guesserOf } from '../../auth/lockouts.js'
import { proveMailbox } from '../../auth/mailbox.js'
import { dropPasskeys } from '../../auth/passkeys.js'
import { endSessions } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'
import { putUser, reachedBy, userByEmail, userById, withoutPassword } from '../../auth/users.js'
import { invalidCredentials } from './login.js'

/**
 * Changes a password and ends the other sessions and all links, because the old password may have been
 * stolen.
 */
export function passwordChange(namespace: NamespaceState, change: ChangeOf<'passwordChange'>): ChangeResult {
  const { userId, sid, comparedHash, passwordHash, device } = change
  const user = userById(namespace, userId)
  if (user === undefined || user.passwordHash !== comparedHash) return invalidCredentials
  clearFailures(namespace, guesserOf(namespace, { email: user.email, user, device }))
  putUser(namespace, { ...user, passwordHash, devicesSinceMs: namespace.nowMs })
  endSessions(namespace, userId, sid)
  dropLinks(namespace, user.email)
  namespace.audit('auth/password_changed', { userId, email: user.email, sid })
  return { kind: 'done' }
}

/** Sets a password by a link, ends all sessions and links, and removes the passkeys if requested. */
export function passwordReset(namespace: NamespaceState, change: ChangeOf<'passwordReset'>): ChangeResult {
  const { hash, passwordHash, removePasskeys } = change
  const link = takeLink(namespace, hash, 'passwordReset')
  const user = link === undefined ? undefined : userByEmail(namespace, link.email)
  if (link === undefined || user === undefined) return passwordResetFailed(namespace, { hash })
  const { userId, email } = user
  const removed = removePasskeys === true ? dropPasskeys(namespace, userId) : 0
  const proven = link.mailed ? proveMailbox(namespace, user) : user
  const reachedByLink = reachedBy(link.line, proven.reachedBy)
  const changed = { ...proven, ...reachedByLink, passwordHash, devicesSinceMs: namespace.nowMs }
  endSessions(namespace, userId)
  dropLinks(namespace, email)
  clearFailures(namespace, { email, user })
  putUser(namespace, changed)
  if (removed > 0) namespace.audit('auth/passkey_removed', { userId, email, count: removed })
  namespace.audit('auth/password_changed', { userId, email })
  return { kind: 'user', user: withoutPassword(changed) }
}

const badLink = refuse(
  'invalid_token',
  'The reset token is invalid, was used or has expired: request a new one',
  { status: 400 },
)

/** Records the use of a reset token that cannot be used. */
export function passwordResetFailed(
  namespace: NamespaceState,
  { hash }: Pick<ChangeOf<'passwordResetFailed'>, 'hash'>,
): ChangeResult {
  recordBadLink(namespace, hash, 'passwordReset')
  return () => badLink
}
