import type { KeyEpochs } from '../../../src/protocol/auth-messages.js'
import { tokensEndAtMs } from '../../auth/sessions.js'
import type { AuthSpace } from '../../auth/namespace-state.js'

/** The signing keys of a namespace by their epochs; the first is in force until a rotation. */
export function keyEpochs(space: AuthSpace): KeyEpochs {
  const kept = space.find('keys', '') ?? { kind: 'keyEpochs', epoch: 0, retired: [] }
  return { ...kept, retired: kept.retired.filter(({ untilMs }) => untilMs > space.nowMs) }
}

/** Makes the next key, which was published all along, the one in force (contract.md 6.2). */
export function keyRotate(space: AuthSpace): KeyEpochs {
  const { epoch, retired } = keyEpochs(space)
  const rotated: KeyEpochs = {
    kind: 'keyEpochs',
    epoch: epoch + 1,
    retired: [...retired, { epoch, untilMs: tokensEndAtMs(space) }],
  }
  space.put(['keys', ''], rotated)
  space.audit('auth/key_rotated', {})
  return rotated
}
