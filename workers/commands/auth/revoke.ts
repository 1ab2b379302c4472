import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import type { NamespaceState, Changed } from '../../auth/namespace-state.js'

/** Has one token refused until it has expired; its session goes on. */
export function revoke(namespace: NamespaceState, change: ChangeOf<'revoke'>): Changed {
  const { userId, sid, jti, expiresAtMs } = change
  namespace.end({ what: 'jti', id: jti, untilMs: expiresAtMs })
  namespace.audit('auth/token_revoked', { userId, sid })
  return { kind: 'ended', sessions: 0 }
}
