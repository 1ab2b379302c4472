import type { User } from '../../client/index.js'
import { Time } from '../parts/texts.js'
import type { Route } from '../route.js'

export type UsersRoute = Extract<Route, { screen: 'users' }>

/** The time until which password sign-in is locked. */
export function LockedUntil({ user: { locked_until_ms: lockedUntilMs } }: { user: User }) {
  if (lockedUntilMs === null) return <span class="muted">Not locked</span>
  return (
    <span class="badge failure">
      <Time ms={lockedUntilMs} />
    </span>
  )
}
