import { sessionEndsAtMs } from '../../../src/auth/session.js'
import { refuse } from '../../../src/base/errors.js'
import type { AuthAnswer, ChangeOf, LookupOf } from '../../../src/protocol/auth-messages.js'
import { endSession, sessionById, sessionsOf } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'

/** The sessions of a user, newest first. */
export function sessionList(namespace: NamespaceState, { userId }: LookupOf<'sessions'>): AuthAnswer {
  const sessions = sessionsOf(namespace, userId).toSorted((one, other) => other.createdAtMs - one.createdAtMs)
  return { kind: 'sessions', sessions }
}

/** Ends a session of the caller's user; 404 for any other session. */
export function sessionEnd(namespace: NamespaceState, { userId, sid }: ChangeOf<'sessionEnd'>): ChangeResult {
  const session = sessionById(namespace, sid)
  if (session?.userId !== userId || sessionEndsAtMs(session) <= namespace.nowMs) {
    return refuse('not_found', 'You have no session with this sid')
  }
  endSession(namespace, userId, sid)
  namespace.audit('auth/logout', { userId, sid })
  return { kind: 'ended', sessions: 1 }
}
