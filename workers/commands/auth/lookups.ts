import { unreachable } from '../../../src/base/assert.js'
import type { AuthLookup, AuthOutcome, Lookup } from '../../../src/protocol/auth-messages.js'
import type { Outcome } from '../../../src/protocol/messages.js'
import { findLink } from '../../auth/links.js'
import { AuthSpace } from '../../auth/namespace-state.js'
import { type ShardState } from '../../shard/state.js'
import { keyEpochs } from './keys.js'
import { loginState } from './login.js'
import { userOf } from './me.js'
import { passkeyList } from './passkeys.js'
import { sessionList } from './sessions.js'
import { userList } from './users.js'

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
