import type { ServiceClient, User } from '../../client/index.js'
import { hasScope, type Scope, type WhoAmI } from './session.js'

/** A client for the users of an organism, or for users without an organism. */
export function namespaceOf(service: ServiceClient, organism: string | undefined): ServiceClient {
  return organism === undefined ? service : service.organism(organism)
}

/** The scope that manages the users of an organism, or those without an organism. */
export function neededForUsers(organism: string | undefined): Scope {
  return organism === undefined ? 'admin:*' : 'admin:organisms'
}

/** Whether the key can read the users of an organism, or those without an organism. */
export function canReadUsers(who: WhoAmI, organism: string | undefined): boolean {
  // The routes of users refuse keys that are limited to agents.
  return who.agents.length === 0 && hasScope(who, neededForUsers(organism))
}

/** Reads the user with an e-mail, ignoring case; undefined if there is none. */
export async function readUser(
  service: ServiceClient,
  email: string,
  signal: AbortSignal,
): Promise<User | undefined> {
  const folded = email.normalize('NFC').toLowerCase()
  // The exact e-mail sorts before all others with this prefix.
  const { users } = await service.auth.users.list({ prefix: folded, limit: 1, signal })
  return users.find((user) => user.email === folded)
}

/** Reads the user with an id; undefined if there is none. */
export async function readUserOfId(
  service: ServiceClient,
  userId: string,
  signal: AbortSignal,
): Promise<User | undefined> {
  return (await service.auth.users.list({ userId, signal })).users[0]
}
