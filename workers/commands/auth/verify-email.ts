import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { recordBadLink } from '../../auth/failures.js'
import { takeLink } from '../../auth/mailed-links.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'
import { putUser, userByEmail, withoutPassword } from '../../auth/users.js'

/**
 * Marks an e-mail as verified. This does not prove the mailbox and removes nothing, because the owner may be
 * confirming an account that an attacker created with the address (docs/adr/0031-proof-of-a-mailbox.md).
 */
export function emailVerify(namespace: NamespaceState, { hash }: ChangeOf<'emailVerify'>): ChangeResult {
  const link = takeLink(namespace, hash, 'verifyEmail')
  const user = link === undefined ? undefined : userByEmail(namespace, link.email)
  if (link === undefined || user === undefined) {
    recordBadLink(namespace, hash, 'verifyEmail')
    const detail = 'The verify token is invalid, was used or has expired: request a new one'
    return () => refuse('invalid_token', detail, { status: 400 })
  }
  const verified = { ...user, verified: true }
  putUser(namespace, verified)
  namespace.audit('auth/email_verified', { userId: user.userId, email: user.email })
  return { kind: 'user', user: withoutPassword(verified) }
}
