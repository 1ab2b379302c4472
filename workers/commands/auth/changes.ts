import { unreachable } from '../../../src/base/assert.js'
import type { Refusal } from '../../../src/base/errors.js'
import type { AuthAnswer, AuthChange, AuthOutcome, Change } from '../../../src/protocol/auth-messages.js'
import { AuthSpace } from '../../auth/space.js'
import type { CommitGroup } from '../../commit-group.js'
import type { Decision, ShardState } from '../../shard-state.js'
import { keyRotate } from './keys.js'
import { loginFailed, loginSucceeded } from './login.js'
import { logout } from './logout.js'
import { linkSend, magicLinkVerify } from './magic-link.js'
import { userMetadata } from './me.js'
import { passwordChange, passwordReset } from './password.js'
import { refresh } from './refresh.js'
import { register } from './register.js'
import { revoke } from './revoke.js'
import { sessionEnd } from './sessions.js'
import { appMetadata, userDelete } from './users.js'
import { emailVerify } from './verify-email.js'

/**
 * What a change came to. A refusal by itself changed nothing; `{refused}` is one that was written down, as a failed
 * login is.
 */
export type Changed = AuthAnswer | Refusal | { refused: Refusal }

/** Carries out one change of an auth namespace, with its audit records. */
export function authChange(state: ShardState, command: AuthChange, group: CommitGroup): Decision {
  const space = AuthSpace.of(state, command, group)
  if ('code' in space) return space
  const changed = change(space, command.change)
  if ('code' in changed) return changed
  const outcome: AuthOutcome = {
    kind: 'auth',
    answer: 'refused' in changed ? { kind: 'refused', refusal: changed.refused } : changed,
    ...(space.ended.length > 0 && { ended: space.ended }),
    ...(space.mailed && { mailed: true }),
  }
  return () => outcome
}

function change(space: AuthSpace, change: Change): Changed {
  switch (change.kind) {
    case 'register':
      return register(space, change)
    case 'loginSucceeded':
      return loginSucceeded(space, change)
    case 'loginFailed':
      return loginFailed(space, change)
    case 'refresh':
      return refresh(space, change)
    case 'logout':
      return logout(space, change)
    case 'sessionEnd':
      return sessionEnd(space, change)
    case 'revoke':
      return revoke(space, change)
    case 'userMetadata':
      return userMetadata(space, change)
    case 'appMetadata':
      return appMetadata(space, change)
    case 'userDelete':
      return userDelete(space, change)
    case 'linkSend':
      return linkSend(space, change)
    case 'magicLinkVerify':
      return magicLinkVerify(space, change)
    case 'emailVerify':
      return emailVerify(space, change)
    case 'passwordReset':
      return passwordReset(space, change)
    case 'passwordChange':
      return passwordChange(space, change)
    case 'keyRotate':
      return keyRotate(space)
    default:
      return unreachable(change)
  }
}
