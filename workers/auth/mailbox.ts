import type { UserRow } from '../../src/auth/user.js'
import { dropLinks } from './mailed-links.js'
import { dropPasskeys } from './passkeys.js'
import { endSessions } from './sessions.js'
import type { NamespaceState } from './namespace-state.js'

/**
 * The user after a sign-in that proved the mailbox: by a magic link or a password reset by mail, or by a provider's
 * verified e-mail. On the first such proof everything that was set before is removed, because somebody else may have
 * set it: password, passkeys, links, sessions, devices and user_metadata. What the root key wrote, app_metadata, stays.
 * @returns the user to be put, verified
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
