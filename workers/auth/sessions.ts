import { limits } from '../../src/base/limits.js'
import { openSession, type SessionRow } from '../../src/auth/session.js'
import type { UserRow } from '../../src/auth/user.js'
import type { SignedIn } from '../../src/protocol/auth-messages.js'
import type { AuthSpace } from './namespace-state.js'
import { putUser, withoutPassword } from './users.js'

/** Opens a session of a user who has just come in. @param amr how (RFC 8176) */
export function signIn(space: AuthSpace, user: UserRow, amr: string[]): SignedIn {
  const { refreshExpirySecs } = space.state.auth
  makeRoom(space, user.userId)
  const session = openSession(
    { userId: user.userId, amr, refreshExpirySecs },
    space.nowMs,
    space.state.random,
  )
  putSession(space, session)
  const signedIn = { ...user, lastLoginAtMs: space.nowMs }
  putUser(space, signedIn)
  return { kind: 'signedIn', user: withoutPassword(signedIn), session, generation: session.generation }
}

/** Keeps a session until its refresh token expires. */
export function putSession(space: AuthSpace, session: SessionRow): void {
  space.put(['session', session.sid], session, session.expiresAtMs)
  space.put(['user-session', `${session.userId}:${session.sid}`], true, session.expiresAtMs)
}

/** A session that has not expired. */
export function sessionById(space: AuthSpace, sid: string): SessionRow | undefined {
  return space.find('session', sid)
}

/** The sessions of a user that have not expired. */
export function sessionsOf(space: AuthSpace, userId: string): SessionRow[] {
  return space
    .ids('user-session', `${userId}:`)
    .map((id) => sessionById(space, id.slice(userId.length + 1)))
    .filter((session) => session !== undefined)
    .filter((session) => session.expiresAtMs > space.nowMs)
}

/** Ends one session: its refresh tokens and, until they have expired, its other tokens are refused. */
export function endSession(space: AuthSpace, userId: string, sid: string): void {
  space.remove('session', sid)
  space.remove('user-session', `${userId}:${sid}`)
  space.end({ what: 'sid', id: sid, untilMs: tokensEndAtMs(space) })
}

/** Ends the sessions of a user, all but `kept`. @returns how many */
export function endSessions(space: AuthSpace, userId: string, kept?: string): number {
  const ending = sessionsOf(space, userId).filter(({ sid }) => sid !== kept)
  for (const { sid } of ending) endSession(space, userId, sid)
  return ending.length
}

/** When the last token that can have been issued by now has expired: by a clock that was as far ahead as may be. */
export function tokensEndAtMs(space: AuthSpace): number {
  return space.nowMs + limits.clockAheadMsMax + space.state.auth.jwtExpirySecs * 1_000
}

/** A user has a bounded number of sessions: the one that was unused for longest makes room for a new one. */
function makeRoom(space: AuthSpace, userId: string): void {
  const ids = space.ids('user-session', `${userId}:`)
  if (ids.length < limits.sessionsPerUserMax) return
  const [oldest] = sessionsOf(space, userId).toSorted((one, other) => one.lastUsedAtMs - other.lastUsedAtMs)
  if (oldest !== undefined) endSession(space, userId, oldest.sid)
}
