import type {
  AuthChange,
  AuthOutcome,
  AuthLookup,
  Change,
  ChangeOf,
  Lookup,
  LookupOf,
} from '../../../src/protocol/auth-messages.js'
import { NamespaceState, type ChangeResult } from '../../auth/namespace-state.js'
import { flushAnonymous } from '../../auth/anonymous-events.js'
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
import { passwordChange, passwordReset, passwordResetFailed } from './password.js'
import { refresh } from './refresh.js'
import { register } from './register.js'
import { revoke } from './revoke.js'
import { sessionEnd, sessionList } from './sessions.js'
import { appMetadata, userDelete, userList, userLogout, userSessionList, userUnlock } from './users.js'
import { emailVerify } from './verify-email.js'
import type { FeatureCommands } from '../../shard/command-table.js'
import { auth } from '../../store/tables/auth-table.js'

/** Sign-in. */
export const namespaceCommands = {
  writes: {
    authChange: { decide: authChange },
  },
  reads: {
    authLookup: { answer: authLookup },
    revocationsList: { answer: revocationsList },
  },
} satisfies FeatureCommands

/** Carries out a change of an auth namespace and writes its audit records. */
function authChange(state: ShardState, command: AuthChange, group: CommitGroup): Decision {
  const { change } = command
  if (change.kind === 'namespaceInit') {
    const answer = namespaceInit(state, command, group)
    return 'code' in answer ? answer : () => ({ kind: 'auth', answer })
  }
  const namespace = NamespaceState.of(state, command, group)
  if ('code' in namespace) return namespace
  flushAnonymous(namespace)
  const result = decisionOf(change.kind)(namespace, change)
  if ('code' in result) return result
  const outcome: AuthOutcome = {
    kind: 'auth',
    answer: typeof result === 'function' ? result() : result,
    ...(namespace.mailed && { mailed: true }),
    ...(namespace.endedUser !== undefined && { endedUser: namespace.endedUser }),
    ...(namespace.failure !== undefined && { failure: namespace.failure }),
  }
  return () => outcome
}

/** The function that decides each kind of change of an existing namespace. */
const changes: { [Kind in ChangeOfExisting]: Decide<ChangeOf<Kind>> } = {
  register,
  loginSucceeded,
  loginFailed,
  signInFailed,
  refresh,
  logout,
  sessionEnd,
  revoke,
  userMetadata,
  appMetadata,
  userDelete,
  userUnlock,
  userLogout,
  linkSend,
  magicLinkVerify,
  emailVerify,
  passwordReset,
  passwordResetFailed,
  passwordChange,
  passkeyRegistration,
  passkeyAuthentication,
  passkeySessionTake,
  passkeyRegister,
  passkeyLogin,
  passkeyRemove,
  keyRotate,
  oauthStart,
  oauthReturn,
  oauthLogin,
}

type ChangeOfExisting = Exclude<Change['kind'], 'namespaceInit'>
type Decide<OneChange> = (namespace: NamespaceState, change: OneChange) => ChangeResult

function decisionOf<Kind extends ChangeOfExisting>(kind: Kind): Decide<ChangeOf<Kind>> {
  return changes[kind]
}

/** Answers a lookup in an auth namespace; 404 if the namespace does not exist. */
function authLookup(state: ShardState, command: AuthLookup): Outcome {
  const namespace = NamespaceState.toRead(state, command)
  return 'code' in namespace
    ? namespace
    : { kind: 'auth', answer: answerOf(command.lookup.kind)(namespace, command.lookup) }
}

/** The unexpired revocations of all namespaces of the shard. */
function revocationsList(state: ShardState): Outcome {
  return { kind: 'revocations', rows: state.store.tables.of(auth).revocations(state.clock()) }
}

/** The function that answers each kind of lookup. */
const lookups: { [Kind in Lookup['kind']]: Answer<LookupOf<Kind>> } = {
  loginState,
  user: userOf,
  users: userList,
  sessions: sessionList,
  userSessions: userSessionList,
  link: (namespace, { hash, purpose }) => ({
    kind: 'link',
    usable: findLink(namespace, hash, purpose) !== undefined,
  }),
  passkeys: passkeyList,
  keyEpochs,
}

type Answer<OneLookup> = (namespace: NamespaceState, lookup: OneLookup) => AuthOutcome['answer']

function answerOf<Kind extends Lookup['kind']>(kind: Kind): Answer<LookupOf<Kind>> {
  return lookups[kind]
}
