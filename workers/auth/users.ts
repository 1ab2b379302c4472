import type { AuthUser } from '../../src/protocol/auth-messages.js'
import { newUserId, type UserRow } from '../../src/auth/user.js'
import type { AuthSpace } from './namespace-state.js'

/** The account of an e-mail as `normalizeEmail` gives it. */
export function userByEmail(space: AuthSpace, email: string): UserRow | undefined {
  const userId = space.find('email', email)
  return userId === undefined ? undefined : userById(space, userId)
}

export function userById(space: AuthSpace, userId: string): UserRow | undefined {
  return space.find('user', userId)
}

/** Keeps a user that is there already as it is now. */
export function putUser(space: AuthSpace, user: UserRow): void {
  space.put(['user', user.userId], user)
}

/** Makes an account. */
export function createUser(
  space: AuthSpace,
  about: Pick<UserRow, 'email' | 'verified' | 'mailboxProven'> & { passwordHash?: string },
): UserRow {
  const user: UserRow = {
    userId: newUserId(space.state.random),
    ...about,
    appMetadata: {},
    userMetadata: {},
    createdAtMs: space.nowMs,
  }
  space.put(['email', user.email], user.userId)
  putUser(space, user)
  return user
}

/** A user as others than its shard may see it. */
export function withoutPassword({ passwordHash: _passwordHash, ...user }: UserRow): AuthUser {
  return user
}
