import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { dropLinks, takeLink } from '../../auth/mailed-links.js'
import { clearFailures, guesserOf } from '../../auth/lockouts.js'
import { proveMailbox } from '../../auth/mailbox.js'
import { dropPasskeys } from '../../auth/passkeys.js'
import { endSessions } from '../../auth/sessions.js'
import type { NamespaceState, Changed } from '../../auth/namespace-state.js'
import { putUser, reachedBy, userByEmail, userById, withoutPassword } from '../../auth/users.js'
import { invalidCredentials } from './login.js'

/**
 * Sets another password and ends the other sessions and earlier links: the user may be changing it because one was
 * stolen.
 */
export function passwordChange(namespace: NamespaceState, change: ChangeOf<'passwordChange'>): Changed {
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

/** Sets a password by a link, ends every session and every other link, and removes the passkeys if asked to. */
export function passwordReset(namespace: NamespaceState, change: ChangeOf<'passwordReset'>): Changed {
  const { hash, passwordHash, removePasskeys } = change
  const link = takeLink(namespace, hash, 'passwordReset')
  const user = link === undefined ? undefined : userByEmail(namespace, link.email)
  if (link === undefined || user === undefined) {
    const detail = 'Expected a reset token that is neither used nor expired'
    return () => refuse('invalid_token', detail, { status: 400 })
  }
  const { userId, email } = user
  const removed = removePasskeys === true ? dropPasskeys(namespace, userId) : 0
  const proven = link.mailed ? proveMailbox(namespace, user) : user
  const reached = reachedBy(link.line, proven.reachedBy)
  const owner = { ...proven, ...reached, passwordHash, devicesSinceMs: namespace.nowMs }
  endSessions(namespace, userId)
  dropLinks(namespace, email)
  clearFailures(namespace, { email, user })
  putUser(namespace, owner)
  if (removed > 0) namespace.audit('auth/passkey_removed', { userId, email, count: removed })
  namespace.audit('auth/password_changed', { userId, email })
  return { kind: 'user', user: withoutPassword(owner) }
}
