import { unreachable } from '../../../src/base/assert.js'
import type {
  AuthChange,
  AuthOutcome,
  Change,
  AuthLookup,
  Lookup,
} from '../../../src/protocol/auth-messages.js'
import { NamespaceState, type Changed } from '../../auth/namespace-state.js'
import { tellTogether } from '../../auth/strangers.js'
import type { CommitGroup } from '../../shard/commit-group.js'
import type { Decision, ShardState } from '../../shard/state.js'
import { findLink } from '../../auth/mailed-links.js'
import type { Outcome } from '../../../src/protocol/messages.js'
import { namespaceInit } from '../organisms.js'
import { keyEpochs, keyRotate } from './keys.js'
import { loginFailed, loginState, loginSucceeded, signInFailed } from './login.js'
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
import { appMetadata, userDelete, userList, userLogout, userSessionList, userUnlock } from './users.js'
import { emailVerify } from './verify-email.js'

/** Carries out one change of an auth namespace, with its audit records. */
export function authChange(state: ShardState, command: AuthChange, group: CommitGroup): Decision {
  const { change: asked } = command
  if (asked.kind === 'namespaceInit') {
    const made = namespaceInit(state, command, group)
    return 'code' in made ? made : () => ({ kind: 'auth', answer: made })
  }
  const namespace = NamespaceState.of(state, command, group)
  if ('code' in namespace) return namespace
  tellTogether(namespace)
  const changed = change(namespace, asked)
  if ('code' in changed) return changed
  const outcome: AuthOutcome = {
    kind: 'auth',
    answer: typeof changed === 'function' ? changed() : changed,
    ...(namespace.mailed && { mailed: true }),
    ...(namespace.failure !== undefined && { failure: namespace.failure }),
  }
  return () => outcome
}

/** A change of an existing namespace. */
function change(namespace: NamespaceState, change: Exclude<Change, { kind: 'namespaceInit' }>): Changed {
  switch (change.kind) {
    case 'register':
      return register(namespace, change)
    case 'loginSucceeded':
      return loginSucceeded(namespace, change)
    case 'loginFailed':
      return loginFailed(namespace, change)
    case 'signInFailed':
      return signInFailed(namespace, change)
    case 'refresh':
      return refresh(namespace, change)
    case 'logout':
      return logout(namespace, change)
    case 'sessionEnd':
      return sessionEnd(namespace, change)
    case 'revoke':
      return revoke(namespace, change)
    case 'userMetadata':
      return userMetadata(namespace, change)
    case 'appMetadata':
      return appMetadata(namespace, change)
    case 'userDelete':
      return userDelete(namespace, change)
    case 'userUnlock':
      return userUnlock(namespace, change)
    case 'userLogout':
      return userLogout(namespace, change)
    case 'linkSend':
      return linkSend(namespace, change)
    case 'magicLinkVerify':
      return magicLinkVerify(namespace, change)
    case 'emailVerify':
      return emailVerify(namespace, change)
    case 'passwordReset':
      return passwordReset(namespace, change)
    case 'passwordChange':
      return passwordChange(namespace, change)
    case 'passkeyRegistration':
      return passkeyRegistration(namespace, change)
    case 'passkeyAuthentication':
      return passkeyAuthentication(namespace, change)
    case 'passkeySessionTake':
      return passkeySessionTake(namespace, change)
    case 'passkeyRegister':
      return passkeyRegister(namespace, change)
    case 'passkeyLogin':
      return passkeyLogin(namespace, change)
    case 'passkeyRemove':
      return passkeyRemove(namespace, change)
    case 'keyRotate':
      return keyRotate(namespace)
    case 'oauthStart':
      return oauthStart(namespace, change)
    case 'oauthReturn':
      return oauthReturn(namespace, change)
    case 'oauthLogin':
      return oauthLogin(namespace, change)
    default:
      return unreachable(change)
  }
}

/** Answers one lookup in an auth namespace; 404 when it does not exist. */
export function authLookup(state: ShardState, command: AuthLookup): Outcome {
  const namespace = NamespaceState.toRead(state, command)
  return 'code' in namespace ? namespace : { kind: 'auth', answer: look(namespace, command.lookup) }
}

/** The revocations that are still kept, of all namespaces of the shard. */
export function revocationsList(state: ShardState): Outcome {
  return { kind: 'revocations', rows: state.store.auth.ended(state.clock()) }
}

function look(namespace: NamespaceState, lookup: Lookup): AuthOutcome['answer'] {
  switch (lookup.kind) {
    case 'loginState':
      return loginState(namespace, lookup)
    case 'user':
      return userOf(namespace, lookup)
    case 'users':
      return userList(namespace, lookup)
    case 'sessions':
      return sessionList(namespace, lookup)
    case 'userSessions':
      return userSessionList(namespace, lookup)
    case 'link':
      return { kind: 'link', usable: findLink(namespace, lookup.hash, lookup.purpose) !== undefined }
    case 'passkeys':
      return passkeyList(namespace, lookup)
    case 'keyEpochs':
      return keyEpochs(namespace)
    default:
      return unreachable(lookup)
  }
}
