import type { AuthUser } from '../../src/protocol/auth-messages.js'
import { newUserId, type UserRow } from '../../src/auth/user.js'
import { limits } from '../../src/base/limits/limits.js'
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
    ...reachedBy(namespace.line),
  }
  namespace.put(['email', user.email], user.userId)
  putUser(namespace, user)
  return user
}

/** The member of a user whose account a line of keys made, or can sign in to. @param others lines that could before */
export function reachedBy(
  line: string | undefined,
  others: readonly string[] = [],
): Pick<UserRow, 'reachedBy'> {
  if (line === undefined || others.includes(line)) return {}
  return { reachedBy: [...others, line].slice(-limits.reachingLinesMax) }
}

/** A user without what only its shard may see. */
export function withoutPassword({ passwordHash: _passwordHash, ...user }: UserRow): AuthUser {
  return user
}
