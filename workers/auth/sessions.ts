import { limits } from '../../src/base/limits/limits.js'
import { openSession, sessionEndsAtMs, type SessionRow, tokensEndAtMs } from '../../src/auth/session.js'
import type { UserRow } from '../../src/auth/user.js'
import type { SignedIn } from '../../src/protocol/auth-messages.js'
import { clearSignInFailures } from './failures.js'
import type { NamespaceState } from './namespace-state.js'
import { putUser, withoutPassword } from './users.js'

/** Opens a session for a user that has just signed in. @param amr the authentication methods (RFC 8176) */
export function signIn(namespace: NamespaceState, user: UserRow, amr: string[]): SignedIn {
  const { refreshExpirySecs, jwtExpirySecs } = namespace.state.auth
  clearSignInFailures(namespace, user)
  evictOldest(namespace, user.userId)
  const session = openSession(
    { userId: user.userId, amr, refreshExpirySecs, jwtExpirySecs },
    namespace.nowMs,
    namespace.state.random,
  )
  putSession(namespace, session)
  const signedIn = { ...user, lastLoginAtMs: namespace.nowMs }
  putUser(namespace, signedIn)
  return { kind: 'signedIn', user: withoutPassword(signedIn), session, generation: session.generation }
}

/** Stores a session until none of its tokens is valid any more. */
export function putSession(namespace: NamespaceState, session: SessionRow): void {
  const endsAtMs = sessionEndsAtMs(session)
  namespace.put(['session', session.sid], session, endsAtMs)
  namespace.put(['user-session', `${session.userId}:${session.sid}`], true, endsAtMs)
}

export function sessionById(namespace: NamespaceState, sid: string): SessionRow | undefined {
  return namespace.find('session', sid)
}

/** The sessions of a user of which any token is valid, also if only an access token is. */
export function sessionsOf(namespace: NamespaceState, userId: string): SessionRow[] {
  return sidsOf(namespace, userId)
    .map((sid) => namespace.findValid('session', sid))
    .filter((session) => session !== undefined)
    .filter((session) => sessionEndsAtMs(session) > namespace.nowMs)
}

function sidsOf(namespace: NamespaceState, userId: string): string[] {
  return namespace.ids('user-session', `${userId}:`).map((id) => id.slice(userId.length + 1))
}

/** Ends a session and revokes its tokens. */
export function endSession(namespace: NamespaceState, userId: string, sid: string): void {
  const session = namespace.findValid('session', sid)
  namespace.remove('session', sid)
  namespace.remove('user-session', `${userId}:${sid}`)
  // Tokens that were issued before the setting of their lifetime was lowered are valid for longer.
  const untilMs = Math.max(session?.tokensEndAtMs ?? 0, issuedTokensEndAtMs(namespace))
  namespace.revoke(userId, { what: 'sid', id: sid, untilMs })
}

/** Ends all sessions of a user except `exceptSid`. @returns their number */
export function endSessions(namespace: NamespaceState, userId: string, exceptSid?: string): number {
  const ending = sidsOf(namespace, userId).filter((sid) => sid !== exceptSid && mayBeOpen(namespace, sid))
  for (const sid of ending) endSession(namespace, userId, sid)
  return ending.length
}

/** Whether a token of a session may be valid, as one of a session whose row is invalid. */
function mayBeOpen(namespace: NamespaceState, sid: string): boolean {
  const endsAtMs = namespace.state.store.setAside.unlessInvalid(() => {
    const session = sessionById(namespace, sid)
    return session === undefined ? 0 : sessionEndsAtMs(session)
  })
  return (endsAtMs ?? Infinity) > namespace.nowMs
}

/** When every token that was issued until now under the current settings has expired. */
export function issuedTokensEndAtMs(namespace: NamespaceState): number {
  return tokensEndAtMs(namespace.nowMs, namespace.state.auth)
}

/** Ends the least recently used session of a user that has `limits.sessionsPerUserMax`. */
function evictOldest(namespace: NamespaceState, userId: string): void {
  if (namespace.ids('user-session', `${userId}:`).length < limits.sessionsPerUserMax) return
  const sessions = sessionsOf(namespace, userId)
  if (sessions.length < limits.sessionsPerUserMax) return
  const [oldest] = sessions.toSorted((one, other) => one.lastUsedAtMs - other.lastUsedAtMs)
  if (oldest !== undefined) endSession(namespace, userId, oldest.sid)
}
