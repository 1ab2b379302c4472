import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { takeLink } from '../../auth/links.js'
import { clearFailures } from '../../auth/lockouts.js'
import { proveMailbox } from '../../auth/mailbox.js'
import { endSessions } from '../../auth/sessions.js'
import type { AuthSpace } from '../../auth/space.js'
import { putUser, userByEmail, userById, withoutPassword } from '../../auth/users.js'
import type { Changed } from './changes.js'
import { invalidCredentials } from './login.js'

/** Sets another password and ends the other sessions: who asks for it may have been robbed of one. */
export function passwordChange(space: AuthSpace, change: ChangeOf<'passwordChange'>): Changed {
  const { userId, sid, comparedHash, passwordHash } = change
  const user = userById(space, userId)
  if (user === undefined || user.passwordHash !== comparedHash) return invalidCredentials
  clearFailures(space, user.email, userId)
  putUser(space, { ...user, passwordHash })
  endSessions(space, userId, sid)
  space.audit('auth/password_changed', { userId, email: user.email, sid })
  return { kind: 'done' }
}

/** Sets a password by a link, and ends every session. */
export function passwordReset(space: AuthSpace, { hash, passwordHash }: ChangeOf<'passwordReset'>): Changed {
  const link = takeLink(space, hash, 'passwordReset')
  const user = link === undefined ? undefined : userByEmail(space, link.email)
  if (link === undefined || user === undefined) {
    const detail = 'Expected a reset token that is neither used nor expired'
    return { refused: refuse('invalid_token', detail, { status: 400 }) }
  }
  const { userId, email } = user
  const owner = { ...(link.mailed ? proveMailbox(space, user) : user), passwordHash }
  endSessions(space, userId)
  clearFailures(space, email, userId)
  putUser(space, owner)
  space.audit('auth/password_changed', { userId, email })
  return { kind: 'user', user: withoutPassword(owner) }
}
