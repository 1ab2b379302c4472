import type { SignInReason } from '../../../src/auth/sign-in-failure.js'
import { refuse } from '../../../src/base/errors.js'
import { unreachable } from '../../../src/base/assert.js'
import { decideRefresh } from '../../../src/auth/refresh-token.js'
import { rotateSession } from '../../../src/auth/session.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { recordFailure } from '../../auth/failures.js'
import { endSession, putSession, sessionById } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'
import { userById, withoutPassword } from '../../auth/users.js'

const unknown = refuse('refresh_invalid', 'The session of this refresh token has ended: sign in again')

/** Exchanges a refresh token of this namespace (docs/adr/0010-auth-state.md). */
export function refresh(namespace: NamespaceState, { sid, generation }: ChangeOf<'refresh'>): ChangeResult {
  const session = sessionById(namespace, sid)
  const user = session === undefined ? undefined : userById(namespace, session.userId)
  const failed = (reason: SignInReason) => recordFailure(namespace, { user }, { method: 'refresh', reason })
  if (session === undefined || user === undefined) {
    failed('session_ended')
    return () => unknown
  }
  const decision = decideRefresh(session, generation, namespace.nowMs)
  switch (decision.kind) {
    case 'rotate': {
      const rotated = rotateSession(session, namespace.nowMs, namespace.state.auth)
      putSession(namespace, rotated)
      return {
        kind: 'signedIn',
        user: withoutPassword(user),
        session: rotated,
        generation: decision.generation,
      }
    }
    case 'repeat':
      return { kind: 'signedIn', user: withoutPassword(user), session, generation: decision.generation }
    case 'expired':
      failed('expired_token')
      return () => refuse('refresh_expired', 'The refresh token has expired: sign in again')
    case 'reused':
      endSession(namespace, user.userId, sid)
      // The reuse has a separate audit record.
      namespace.reportFailure({ method: 'refresh', reason: 'reused_token', userId: user.userId })
      namespace.audit('auth/refresh_reused', {
        userId: user.userId,
        email: user.email,
        sid,
        outcome: 'failure',
      })
      return () =>
        refuse('refresh_reused', 'The refresh token was used before, so its session was ended: sign in again')
    default:
      return unreachable(decision)
  }
}
