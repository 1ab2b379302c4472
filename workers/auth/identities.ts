import type { OauthProviderName, ProviderIdentity } from '../../src/auth/oauth.js'
import type { UserRow } from '../../src/auth/user.js'
import type { NamespaceState } from './namespace-state.js'
import { userById } from './users.js'

/** Identifies a person at a provider for good, unlike an e-mail, which can change or be given to somebody else. */
export interface IdentityRef extends Pick<ProviderIdentity, 'subject'> {
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
