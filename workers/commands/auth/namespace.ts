import { unreachable } from '../../../src/base/assert.js'
import type {
  AuthChange,
  AuthOutcome,
  Change,
  AuthLookup,
  Lookup,
} from '../../../src/protocol/auth-messages.js'
import { AuthSpace, type Changed } from '../../auth/namespace-state.js'
import { tellTogether } from '../../auth/strangers.js'
import type { CommitGroup } from '../../shard/commit-group.js'
import type { Decision, ShardState } from '../../shard/state.js'
import { findLink } from '../../auth/links.js'
import type { Outcome } from '../../../src/protocol/messages.js'
import { namespaceInit } from '../organisms.js'
import { keyEpochs, keyRotate } from './keys.js'
import { loginFailed, loginState, loginSucceeded } from './login.js'
import { logout } from './logout.js'
import { linkSend, magicLinkVerify } from './magic-link.js'
import { userMetadata, userOf } from './me.js'
import {
  passkeyAuthentication,
  passkeyList,
  passkeyLogin,
  passkeyRegister,
  passkeyRegistration,
  passkeyRemove,
  passkeySessionTake,
} from './passkeys.js'
import { oauthLogin, oauthReturn, oauthStart } from './oauth.js'
import { passwordChange, passwordReset } from './password.js'
import { refresh } from './refresh.js'
import { register } from './register.js'
import { revoke } from './revoke.js'
import { sessionEnd, sessionList } from './sessions.js'
import { appMetadata, userDelete, userList } from './users.js'
import { emailVerify } from './verify-email.js'

/** Carries out one change of an auth namespace, with its audit records. */
export function authChange(state: ShardState, command: AuthChange, group: CommitGroup): Decision {
  const { change: asked } = command
  if (asked.kind === 'namespaceInit') {
    const made = namespaceInit(state, command, group)
    return 'code' in made ? made : () => ({ kind: 'auth', answer: made })
  }
  const space = AuthSpace.of(state, command, group)
  if ('code' in space) return space
  tellTogether(space)
  const changed = change(space, asked)
  if ('code' in changed) return changed
  const outcome: AuthOutcome = {
    kind: 'auth',
    answer: typeof changed === 'function' ? changed() : changed,
    ...(space.ended.length > 0 && { ended: space.ended }),
    ...(space.mailed && { mailed: true }),
  }
  return () => outcome
}

/** A change of a namespace that is there. */
function change(space: AuthSpace, change: Exclude<Change, { kind: 'namespaceInit' }>): Changed {
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
    case 'passkeyRegistration':
      return passkeyRegistration(space, change)
    case 'passkeyAuthentication':
      return passkeyAuthentication(space, change)
    case 'passkeySessionTake':
      return passkeySessionTake(space, change)
    case 'passkeyRegister':
      return passkeyRegister(space, change)
    case 'passkeyLogin':
      return passkeyLogin(space, change)
    case 'passkeyRemove':
      return passkeyRemove(space, change)
    case 'keyRotate':
      return keyRotate(space)
    case 'oauthStart':
      return oauthStart(space, change)
    case 'oauthReturn':
      return oauthReturn(space, change)
    case 'oauthLogin':
      return oauthLogin(space, change)
    default:
      return unreachable(change)
  }
}

/** Answers one look at an auth namespace; 404 when it is not there. */
export function authLookup(state: ShardState, command: AuthLookup): Outcome {
  const space = AuthSpace.toRead(state, command)
  return 'code' in space ? space : { kind: 'auth', answer: look(space, command.lookup) }
}

/** What is ended and not forgotten, of all namespaces of the shard. */
export function authEndedList(state: ShardState): Outcome {
  return { kind: 'authEnded', rows: state.store.auth.ended(state.clock()) }
}

function look(space: AuthSpace, lookup: Lookup): AuthOutcome['answer'] {
  switch (lookup.kind) {
    case 'loginState':
      return loginState(space, lookup)
    case 'user':
      return userOf(space, lookup)
    case 'users':
      return userList(space, lookup)
    case 'sessions':
      return sessionList(space, lookup)
    case 'link':
      return { kind: 'link', usable: findLink(space, lookup.hash, lookup.purpose) !== undefined }
    case 'passkeys':
      return passkeyList(space, lookup)
    case 'keyEpochs':
      return keyEpochs(space)
    default:
      return unreachable(lookup)
  }
}
