import type { KeyEpochs } from '../../../src/protocol/auth-messages.js'
import { tokensEndAtMs } from '../../auth/sessions.js'
import type { NamespaceState } from '../../auth/namespace-state.js'

/** The signing keys of a namespace by their epochs; the first is in force until a rotation. */
export function keyEpochs(namespace: NamespaceState): KeyEpochs {
  const kept = namespace.find('keys', '') ?? { kind: 'keyEpochs', epoch: 0, retired: [] }
  return { ...kept, retired: kept.retired.filter(({ untilMs }) => untilMs > namespace.nowMs) }
}

/** Puts the next key, which was published all along, in force (docs/OPERATIONS.md, Signing people in). */
export function keyRotate(namespace: NamespaceState): KeyEpochs {
  const { epoch, retired } = keyEpochs(namespace)
  const rotated: KeyEpochs = {
    kind: 'keyEpochs',
    epoch: epoch + 1,
    retired: [...retired, { epoch, untilMs: tokensEndAtMs(namespace) }],
  }
  namespace.put(['keys', ''], rotated)
  namespace.rotated()
  namespace.audit('auth/key_rotated', {})
  return rotated
}
