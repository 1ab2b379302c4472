import type { OauthProviderName, ProviderIdentity } from '../../src/auth/oauth.js'
import type { UserRow } from '../../src/auth/user.js'
import type { NamespaceState } from './namespace-state.js'
import { userById } from './users.js'

/** Who somebody is at a provider, for good: e-mails change, and are given to others. */
export interface IdentityRef extends Pick<ProviderIdentity, 'subject'> {
  provider: OauthProviderName
}

/** The user that an identity was linked to. */
export function userByIdentity(namespace: NamespaceState, identity: IdentityRef): UserRow | undefined {
  const userId = namespace.find('identity', idOf(identity))
  return userId === undefined ? undefined : userById(namespace, userId)
}

/** Whether a user signs in by an account of a provider already. */
export function hasIdentity(namespace: NamespaceState, userId: string, provider: OauthProviderName): boolean {
  return namespace.ids('user-identity', `${userId}:${provider}:`).length > 0
}

/** Links an identity to a user, who signs in by it from now on. */
export function linkIdentity(namespace: NamespaceState, identity: IdentityRef, userId: string): void {
  namespace.put(['identity', idOf(identity)], userId)
  namespace.put(['user-identity', `${userId}:${idOf(identity)}`], true)
}

/** Takes a user's identities away: who comes with one later is somebody new. */
export function dropIdentities(namespace: NamespaceState, userId: string): void {
  for (const id of namespace.ids('user-identity', `${userId}:`)) {
    namespace.remove('identity', id.slice(userId.length + 1))
    namespace.remove('user-identity', id)
  }
}

function idOf({ provider, subject }: IdentityRef): string {
  return `${provider}:${subject}`
}
