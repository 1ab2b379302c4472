import type { ServiceClient, User } from '../../client/index.js'
import { Time } from '../parts/texts.js'
import type { Route } from '../route.js'

/** What a screen of users is about. */
export type UsersRoute = Extract<Route, { screen: 'users' }>

/** A client for the users of a namespace: those of an organism, or those outside organisms. */
export function namespaceOf(service: ServiceClient, organism: string | undefined): ServiceClient {
  return organism === undefined ? service : service.organism(organism)
}

/** One user; undefined where there is none with this e-mail. */
export async function readUser(
  service: ServiceClient,
  email: string,
  signal: AbortSignal,
): Promise<User | undefined> {
  // An e-mail that begins with the whole of this one comes after it.
  const { users } = await service.auth.users.list({ prefix: email, limit: 1, signal })
  return users.find((user) => user.email === email)
}

/** Until when the user's password is refused. */
export function LockedUntil({ user: { locked_until_ms: lockedUntilMs } }: { user: User }) {
  if (lockedUntilMs === null) return <span class="muted">not locked</span>
  return (
    <span class="badge failure">
      <Time ms={lockedUntilMs} />
    </span>
  )
}
