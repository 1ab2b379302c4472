import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { takeLink } from '../../auth/mailed-links.js'
import type { NamespaceState, Changed } from '../../auth/namespace-state.js'
import { putUser, userByEmail, withoutPassword } from '../../auth/users.js'

/**
 * Marks an e-mail as verified. What was set before stays, and the mailbox is not proven by it: the owner may be
 * confirming an account that somebody else made with the address, and signs in by the mailbox only later
 * (docs/adr/0031-proof-of-a-mailbox.md).
 */
export function emailVerify(namespace: NamespaceState, { hash }: ChangeOf<'emailVerify'>): Changed {
  const link = takeLink(namespace, hash, 'verifyEmail')
  const user = link === undefined ? undefined : userByEmail(namespace, link.email)
  if (link === undefined || user === undefined) {
    const detail = 'Expected a verify token that is neither used nor expired'
    return () => refuse('invalid_token', detail, { status: 400 })
  }
  const verified = { ...user, verified: true }
  putUser(namespace, verified)
  namespace.audit('auth/email_verified', { userId: user.userId, email: user.email })
  return { kind: 'user', user: withoutPassword(verified) }
}
