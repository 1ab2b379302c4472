import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { endSession, endSessions } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'

/** Ends the session of the caller, all other sessions of its user, or both. */
export function logout(namespace: NamespaceState, { userId, sid, scope }: ChangeOf<'logout'>): ChangeResult {
  let sessions = 0
  if (scope !== 'local') sessions += endSessions(namespace, userId, sid)
  if (scope !== 'others') {
    endSession(namespace, userId, sid)
    sessions++
  }
  namespace.audit('auth/logout', { userId, sid })
  return { kind: 'ended', sessions }
}
