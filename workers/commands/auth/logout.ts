import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { endSession, endSessions } from '../../auth/sessions.js'
import type { AuthSpace, Changed } from '../../auth/namespace-state.js'

/** Ends the session of the caller, the others of its user, or all of them. */
export function logout(space: AuthSpace, { userId, sid, scope }: ChangeOf<'logout'>): Changed {
  let sessions = 0
  if (scope !== 'local') sessions += endSessions(space, userId, sid)
  if (scope !== 'others') {
    endSession(space, userId, sid)
    sessions++
  }
  space.audit('auth/logout', { userId, sid })
  return { kind: 'ended', sessions }
}
