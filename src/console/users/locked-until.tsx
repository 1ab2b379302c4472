import type { User } from '../../client/index.js'
import { Time } from '../parts/texts.js'

/** Until when the user's password is refused. */
export function LockedUntil({ user: { locked_until_ms: lockedUntilMs } }: { user: User }) {
  if (lockedUntilMs === null) return <span class="muted">not locked</span>
  return (
    <span class="badge failure">
      <Time ms={lockedUntilMs} />
    </span>
  )
}
