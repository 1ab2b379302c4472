import { limits } from '../../src/base/limits/limits.js'
import { openSession, type SessionRow } from '../../src/auth/session.js'
import type { UserRow } from '../../src/auth/user.js'
import type { SignedIn } from '../../src/protocol/auth-messages.js'
import { clearSignInFailures } from './failures.js'
import type { NamespaceState } from './namespace-state.js'
import { putUser, withoutPassword } from './users.js'

/** Opens a session for a user that has just signed in. @param amr the authentication methods (RFC 8176) */
export function signIn(namespace: NamespaceState, user: UserRow, amr: string[]): SignedIn {
  const { refreshExpirySecs } = namespace.state.auth
  clearSignInFailures(namespace, user)
  evictOldest(namespace, user.userId)
  const session = openSession(
    { userId: user.userId, amr, refreshExpirySecs },
    namespace.nowMs,
    namespace.state.random,
  )
  putSession(namespace, session)
  const signedIn = { ...user, lastLoginAtMs: namespace.nowMs }
  putUser(namespace, signedIn)
  return { kind: 'signedIn', user: withoutPassword(signedIn), session, generation: session.generation }
}

/** Stores a session until its refresh token expires. */
export function putSession(namespace: NamespaceState, session: SessionRow): void {
  namespace.put(['session', session.sid], session, session.expiresAtMs)
  namespace.put(['user-session', `${session.userId}:${session.sid}`], true, session.expiresAtMs)
}

/** A session by its id. */
export function sessionById(namespace: NamespaceState, sid: string): SessionRow | undefined {
  return namespace.find('session', sid)
}

/** The unexpired sessions of a user. */
export function sessionsOf(namespace: NamespaceState, userId: string): SessionRow[] {
  return namespace
    .ids('user-session', `${userId}:`)
    .map((id) => sessionById(namespace, id.slice(userId.length + 1)))
    .filter((session) => session !== undefined)
    .filter((session) => session.expiresAtMs > namespace.nowMs)
}

/** Ends a session and revokes its tokens. */
export function endSession(namespace: NamespaceState, userId: string, sid: string): void {
  namespace.remove('session', sid)
  namespace.remove('user-session', `${userId}:${sid}`)
  namespace.revoke({ what: 'sid', id: sid, untilMs: tokensEndAtMs(namespace) })
}

/** Ends all sessions of a user except `exceptSid`. @returns their number */
export function endSessions(namespace: NamespaceState, userId: string, exceptSid?: string): number {
  const ending = sessionsOf(namespace, userId).filter(({ sid }) => sid !== exceptSid)
  for (const { sid } of ending) endSession(namespace, userId, sid)
  return ending.length
}

/** The time at which all tokens issued until now have expired, with the maximum clock skew. */
export function tokensEndAtMs(namespace: NamespaceState): number {
  return namespace.nowMs + limits.clockAheadMsMax + namespace.state.auth.jwtExpirySecs * 1_000
}

/** Ends the least recently used session of a user that has `limits.sessionsPerUserMax`. */
function evictOldest(namespace: NamespaceState, userId: string): void {
  const ids = namespace.ids('user-session', `${userId}:`)
  if (ids.length < limits.sessionsPerUserMax) return
  const [oldest] = sessionsOf(namespace, userId).toSorted(
    (one, other) => one.lastUsedAtMs - other.lastUsedAtMs,
  )
  if (oldest !== undefined) endSession(namespace, userId, oldest.sid)
}
