import type { ServiceClient, User } from '../../client/index.js'
import { Time } from '../parts/texts.js'
import type { Route } from '../route.js'

/** The route of the users' screens. */
export type UsersRoute = Extract<Route, { screen: 'users' }>

/** A client for the users of an organism, or for users without an organism. */
export function namespaceOf(service: ServiceClient, organism: string | undefined): ServiceClient {
  return organism === undefined ? service : service.organism(organism)
}

/** Reads the user with an e-mail; undefined if there is none. */
export async function readUser(
  service: ServiceClient,
  email: string,
  signal: AbortSignal,
): Promise<User | undefined> {
  // The exact e-mail sorts before all others with this prefix.
  const { users } = await service.auth.users.list({ prefix: email, limit: 1, signal })
  return users.find((user) => user.email === email)
}

/** The time until which password sign-in is locked. */
export function LockedUntil({ user: { locked_until_ms: lockedUntilMs } }: { user: User }) {
  if (lockedUntilMs === null) return <span class="muted">not locked</span>
  return (
    <span class="badge failure">
      <Time ms={lockedUntilMs} />
    </span>
  )
}
