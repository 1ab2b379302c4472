import type { AuthUser } from '../../src/protocol/auth-messages.js'
import { newUserId, type UserRow } from '../../src/auth/user.js'
import type { NamespaceState } from './namespace-state.js'

/** The account of an e-mail as `normalizeEmail` gives it. */
export function userByEmail(namespace: NamespaceState, email: string): UserRow | undefined {
  const userId = namespace.find('email', email)
  return userId === undefined ? undefined : userById(namespace, userId)
}

export function userById(namespace: NamespaceState, userId: string): UserRow | undefined {
  return namespace.find('user', userId)
}

/** Writes a user that exists already. */
export function putUser(namespace: NamespaceState, user: UserRow): void {
  namespace.put(['user', user.userId], user)
}

/** Makes an account. */
export function createUser(
  namespace: NamespaceState,
  about: Pick<UserRow, 'email' | 'verified' | 'mailboxProven'> & { passwordHash?: string },
): UserRow {
  const user: UserRow = {
    userId: newUserId(namespace.state.random),
    ...about,
    appMetadata: {},
    userMetadata: {},
    createdAtMs: namespace.nowMs,
  }
  namespace.put(['email', user.email], user.userId)
  putUser(namespace, user)
  return user
}

/** A user without what only its shard may see. */
export function withoutPassword({ passwordHash: _passwordHash, ...user }: UserRow): AuthUser {
  return user
}
