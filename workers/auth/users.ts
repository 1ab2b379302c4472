import type { AuthUser } from '../../src/protocol/auth-messages.js'
import { newUserId, type UserRow } from '../../src/auth/user.js'
import { limits } from '../../src/base/limits/limits.js'
import type { NamespaceState } from './namespace-state.js'
import type { OauthProviderName, ProviderIdentity } from '../../src/auth/oauth.js'

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

/** Identifies a person at a provider for good, unlike an e-mail, which can change or be given to somebody else. */
interface IdentityRef extends Pick<ProviderIdentity, 'subject'> {
  provider: OauthProviderName
}

/** The user that an identity was linked to. */
export function userByIdentity(namespace: NamespaceState, identity: IdentityRef): UserRow | undefined {
  const userId = namespace.find('identity', idOf(identity))
  return userId === undefined ? undefined : userById(namespace, userId)
}

/** Whether a user already has an identity at a provider. */
export function hasIdentity(namespace: NamespaceState, userId: string, provider: OauthProviderName): boolean {
  return namespace.ids('user-identity', `${userId}:${provider}:`).length > 0
}

/** Links an identity to a user, who can sign in by it from now on. */
export function linkIdentity(namespace: NamespaceState, identity: IdentityRef, userId: string): void {
  namespace.put(['identity', idOf(identity)], userId)
  namespace.put(['user-identity', `${userId}:${idOf(identity)}`], true)
}

/** Removes a user's identities: whoever signs in with one of them later gets a new account. */
export function dropIdentities(namespace: NamespaceState, userId: string): void {
  for (const id of namespace.ids('user-identity', `${userId}:`)) {
    namespace.remove('identity', id.slice(userId.length + 1))
    namespace.remove('user-identity', id)
  }
}

function idOf({ provider, subject }: IdentityRef): string {
  return `${provider}:${subject}`
}
