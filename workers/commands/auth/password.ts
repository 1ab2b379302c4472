import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { dropLinks, takeLink } from '../../auth/links.js'
import { clearFailures, guesserOf } from '../../auth/lockouts.js'
import { proveMailbox } from '../../auth/mailbox.js'
import { dropPasskeys } from '../../auth/passkeys.js'
import { endSessions } from '../../auth/sessions.js'
import type { AuthSpace, Changed } from '../../auth/namespace-state.js'
import { putUser, userByEmail, userById, withoutPassword } from '../../auth/users.js'
import { invalidCredentials } from './login.js'

/**
 * Sets another password and ends the other sessions and the links that were sent before: who asks for it may have been
 * robbed of one.
 */
export function passwordChange(space: AuthSpace, change: ChangeOf<'passwordChange'>): Changed {
  const { userId, sid, comparedHash, passwordHash, device } = change
  const user = userById(space, userId)
  if (user === undefined || user.passwordHash !== comparedHash) return invalidCredentials
  clearFailures(space, guesserOf(space, { email: user.email, user, device }))
  putUser(space, { ...user, passwordHash, devicesSinceMs: space.nowMs })
  endSessions(space, userId, sid)
  dropLinks(space, user.email)
  space.audit('auth/password_changed', { userId, email: user.email, sid })
  return { kind: 'done' }
}

/** Sets a password by a link, ends every session and every other link, and removes the passkeys where it is asked to. */
export function passwordReset(space: AuthSpace, change: ChangeOf<'passwordReset'>): Changed {
  const { hash, passwordHash, removePasskeys } = change
  const link = takeLink(space, hash, 'passwordReset')
  const user = link === undefined ? undefined : userByEmail(space, link.email)
  if (link === undefined || user === undefined) {
    const detail = 'Expected a reset token that is neither used nor expired'
    return () => refuse('invalid_token', detail, { status: 400 })
  }
  const { userId, email } = user
  const removed = removePasskeys === true ? dropPasskeys(space, userId) : 0
  const proven = link.mailed ? proveMailbox(space, user) : user
  const owner = { ...proven, passwordHash, devicesSinceMs: space.nowMs }
  endSessions(space, userId)
  dropLinks(space, email)
  clearFailures(space, { email, user })
  putUser(space, owner)
  if (removed > 0) space.audit('auth/passkey_removed', { userId, email, count: removed })
  space.audit('auth/password_changed', { userId, email })
  return { kind: 'user', user: withoutPassword(owner) }
}
