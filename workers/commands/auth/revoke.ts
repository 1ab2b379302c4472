import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'

/** Revokes a token until it expires; its session continues. */
export function revoke(namespace: NamespaceState, change: ChangeOf<'revoke'>): ChangeResult {
  const { userId, sid, jti, expiresAtMs } = change
  namespace.revoke(userId, { what: 'jti', id: jti, untilMs: expiresAtMs })
  namespace.audit('auth/token_revoked', { userId, sid })
  return { kind: 'ended', sessions: 0 }
}
