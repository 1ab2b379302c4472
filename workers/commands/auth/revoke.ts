import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import type { AuthSpace, Changed } from '../../auth/namespace-state.js'

/** Has one token refused until it has expired; its session goes on (spec.md, Authentication 9). */
export function revoke(space: AuthSpace, change: ChangeOf<'revoke'>): Changed {
  const { userId, sid, jti, expiresAtMs } = change
  space.end({ what: 'jti', id: jti, untilMs: expiresAtMs })
  space.audit('auth/token_revoked', { userId, sid })
  return { kind: 'ended', sessions: 0 }
}
