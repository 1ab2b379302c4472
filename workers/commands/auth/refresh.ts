import type { SignInReason } from '../../../src/auth/sign-in-failure.js'
import { refuse } from '../../../src/base/errors.js'
import { unreachable } from '../../../src/base/assert.js'
import { decideRefresh } from '../../../src/auth/refresh-token.js'
import { rotateSession } from '../../../src/auth/session.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { recordFailure } from '../../auth/failures.js'
import { endSession, putSession, sessionById } from '../../auth/sessions.js'
import type { NamespaceState, Changed } from '../../auth/namespace-state.js'
import { userById, withoutPassword } from '../../auth/users.js'

const unknown = refuse('refresh_invalid', 'Expected the refresh token of a session that has not ended')

/** Exchanges a refresh token that was made here (docs/adr/0010-auth-state.md). */
export function refresh(namespace: NamespaceState, { sid, generation }: ChangeOf<'refresh'>): Changed {
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
      const rotated = rotateSession(session, namespace.nowMs, namespace.state.auth.refreshExpirySecs)
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
      return () => refuse('refresh_expired', 'Expected a refresh token that has not expired')
    case 'reused':
      endSession(namespace, user.userId, sid)
      // It has a record of its own.
      namespace.failed({ method: 'refresh', reason: 'reused_token', userId: user.userId })
      namespace.audit('auth/refresh_reused', {
        userId: user.userId,
        email: user.email,
        sid,
        outcome: 'failure',
      })
      return () => refuse('refresh_reused', 'Expected a refresh token that was not used before')
    default:
      return unreachable(decision)
  }
}
