import type { KeyEpochs } from '../../../src/protocol/auth-messages.js'
import { issuedTokensEndAtMs } from '../../auth/sessions.js'
import type { NamespaceState } from '../../auth/namespace-state.js'

/**
 * The epochs of a namespace's signing keys: the one in force, and the retired ones whose tokens have not all
 * expired.
 */
export function keyEpochs(namespace: NamespaceState): KeyEpochs {
  const stored = namespace.find('keys', '') ?? { kind: 'keyEpochs', epoch: 0, retired: [] }
  return { ...stored, retired: stored.retired.filter(({ untilMs }) => untilMs > namespace.nowMs) }
}

/** Puts the next key in force, which is already published (docs/SIGN-IN.md). */
export function keyRotate(namespace: NamespaceState): KeyEpochs {
  const { epoch, retired } = keyEpochs(namespace)
  const rotated: KeyEpochs = {
    kind: 'keyEpochs',
    epoch: epoch + 1,
    retired: [...retired, { epoch, untilMs: issuedTokensEndAtMs(namespace) }],
  }
  namespace.put(['keys', ''], rotated)
  namespace.notifyRotation()
  namespace.audit('auth/key_rotated', {})
  return rotated
}
