import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { endSession, endSessions } from '../../auth/sessions.js'
import type { NamespaceState, Changed } from '../../auth/namespace-state.js'

/** Ends the session of the caller, the others of its user, or all of them. */
export function logout(namespace: NamespaceState, { userId, sid, scope }: ChangeOf<'logout'>): Changed {
  let sessions = 0
  if (scope !== 'local') sessions += endSessions(namespace, userId, sid)
  if (scope !== 'others') {
    endSession(namespace, userId, sid)
    sessions++
  }
  namespace.audit('auth/logout', { userId, sid })
  return { kind: 'ended', sessions }
}
