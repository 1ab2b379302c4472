import type { AuthUser } from '../../src/protocol/auth-messages.js'
import { newUserId, type UserRow } from '../../src/auth/user.js'
import { limits } from '../../src/base/limits/limits.js'
import type { NamespaceState } from './namespace-state.js'
import type { OauthProviderName, ProviderIdentity } from '../../src/auth/oauth.js'

/** The account of an e-mail, normalized by `normalizeEmail`. */
export function userByEmail(namespace: NamespaceState, email: string): UserRow | undefined {
  const userId = namespace.find('email', email)
  return userId === undefined ? undefined : userById(namespace, userId)
}

export function userById(namespace: NamespaceState, userId: string): UserRow | undefined {
  return namespace.find('user', userId)
}

/** Writes a user that exists. */
export function putUser(namespace: NamespaceState, user: UserRow): void {
  namespace.put(['user', user.userId], user)
}

/** Creates an account. */
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

/** The `reachedBy` member with one more key lineage that created the account or can sign in to it. */
export function reachedBy(
  lineage: string | undefined,
  others: readonly string[] = [],
): Pick<UserRow, 'reachedBy'> {
  if (lineage === undefined || others.includes(lineage)) return {}
  return { reachedBy: [...others, lineage].slice(-limits.reachingLineagesMax) }
}

/** A user without the password hash, which only the shard may see. */
export function withoutPassword({ passwordHash: _passwordHash, ...user }: UserRow): AuthUser {
  return user
}

/** The permanent id of an account at a provider; an e-mail can change or be reassigned. */
interface IdentityRef extends Pick<ProviderIdentity, 'subject'> {
  provider: OauthProviderName
}

export function userByIdentity(namespace: NamespaceState, identity: IdentityRef): UserRow | undefined {
  const userId = namespace.find('identity', idOf(identity))
  return userId === undefined ? undefined : userById(namespace, userId)
}

export function hasIdentity(namespace: NamespaceState, userId: string, provider: OauthProviderName): boolean {
  return namespace.ids('user-identity', `${userId}:${provider}:`).length > 0
}

/** Links an identity to a user, so that the user can sign in by it. */
export function linkIdentity(namespace: NamespaceState, identity: IdentityRef, userId: string): void {
  namespace.put(['identity', idOf(identity)], userId)
  namespace.put(['user-identity', `${userId}:${idOf(identity)}`], true)
}

/** Removes the identities of a user; a later sign-in by one of them creates a new account. */
export function dropIdentities(namespace: NamespaceState, userId: string): void {
  for (const id of namespace.ids('user-identity', `${userId}:`)) {
    namespace.remove('identity', id.slice(userId.length + 1))
    namespace.remove('user-identity', id)
  }
}

function idOf({ provider, subject }: IdentityRef): string {
  return `${provider}:${subject}`
}
