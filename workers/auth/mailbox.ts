import type { UserRow } from '../../src/auth/user.js'
import { dropLinks } from './mailed-links.js'
import { dropPasskeys } from './passkeys.js'
import { endSessions } from './sessions.js'
import type { NamespaceState } from './namespace-state.js'

/**
 * The user after a sign-in that proved the mailbox: by a magic link, a password reset by mail, or a
 * provider's verified e-mail. The first proof removes everything that an attacker may have set before:
 * password, passkeys, links, sessions, devices and user_metadata. app_metadata stays, because only the root
 * key writes it.
 * @returns the verified user, for `putUser`
 */
export function proveMailbox(namespace: NamespaceState, user: UserRow): UserRow {
  if (user.mailboxProven) return { ...user, verified: true }
  dropLinks(namespace, user.email)
  dropPasskeys(namespace, user.userId)
  endSessions(namespace, user.userId)
  const { passwordHash: _passwordHash, ...rest } = user
  return {
    ...rest,
    userMetadata: {},
    verified: true,
    mailboxProven: true,
    devicesSinceMs: namespace.nowMs,
  }
}
