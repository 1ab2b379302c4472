import type { OauthProviderName, ProviderIdentity } from '../../src/auth/oauth.js'
import type { UserRow } from '../../src/auth/user.js'
import type { AuthSpace } from './namespace-state.js'
import { userById } from './users.js'

/** Who somebody is at a provider, for good: e-mails change, and are given to others. */
export interface IdentityRef extends Pick<ProviderIdentity, 'subject'> {
  provider: OauthProviderName
}

/** The user that an identity was linked to. */
export function userByIdentity(space: AuthSpace, identity: IdentityRef): UserRow | undefined {
  const userId = space.find('identity', idOf(identity))
  return userId === undefined ? undefined : userById(space, userId)
}

/** Whether a user signs in by an account of a provider already. */
export function hasIdentity(space: AuthSpace, userId: string, provider: OauthProviderName): boolean {
  return space.ids('user-identity', `${userId}:${provider}:`).length > 0
}

/** Links an identity to a user, who signs in by it from now on. */
export function linkIdentity(space: AuthSpace, identity: IdentityRef, userId: string): void {
  space.put(['identity', idOf(identity)], userId)
  space.put(['user-identity', `${userId}:${idOf(identity)}`], true)
}

/** Takes a user's identities away: who comes with one later is somebody new. */
export function dropIdentities(space: AuthSpace, userId: string): void {
  for (const id of space.ids('user-identity', `${userId}:`)) {
    space.remove('identity', id.slice(userId.length + 1))
    space.remove('user-identity', id)
  }
}

function idOf({ provider, subject }: IdentityRef): string {
  return `${provider}:${subject}`
}
