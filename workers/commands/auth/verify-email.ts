import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { takeLink } from '../../auth/links.js'
import type { AuthSpace } from '../../auth/space.js'
import { putUser, userByEmail, withoutPassword } from '../../auth/users.js'
import type { Changed } from './changes.js'

/** Takes an e-mail for verified; what was set before stays, since this is no way in (contract.md 6.5). */
export function emailVerify(space: AuthSpace, { hash }: ChangeOf<'emailVerify'>): Changed {
  const link = takeLink(space, hash, 'verifyEmail')
  const user = link === undefined ? undefined : userByEmail(space, link.email)
  if (link === undefined || user === undefined) {
    const detail = 'Expected a verify token that is neither used nor expired'
    return { refused: refuse('invalid_token', detail, { status: 400 }) }
  }
  const verified = { ...user, verified: true, mailboxProven: user.mailboxProven || link.mailed }
  putUser(space, verified)
  space.audit('auth/email_verified', { userId: user.userId, email: user.email })
  return { kind: 'user', user: withoutPassword(verified) }
}
