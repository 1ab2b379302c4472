import { refuse } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import type { CommitGroup } from '../commit-group.js'
import type { Decision, ShardState } from '../shard-state.js'

/** Keeps a scoped key (contract.md 1, Scoped keys). */
export function apiKeyCreate(
  state: ShardState,
  command: CommandOf<'apiKeyCreate'>,
  group: CommitGroup,
): Decision {
  if (state.store.apiKeys().length + group.apiKeys.size >= limits.apiKeysMax) {
    return refuse('too_large', `Expected at most ${limits.apiKeysMax} API keys`)
  }
  group.apiKeys.set(command.row.keyId, command.row)
  return () => ({ kind: 'done' })
}

export function apiKeyDelete(
  state: ShardState,
  command: CommandOf<'apiKeyDelete'>,
  group: CommitGroup,
): Decision {
  const there = group.apiKeys.has(command.keyId)
    ? group.apiKeys.get(command.keyId) !== undefined
    : state.store.apiKeys().some((row) => row.keyId === command.keyId)
  if (!there) return refuse('not_found', 'Expected the key_id of an API key')
  group.apiKeys.set(command.keyId, undefined)
  return () => ({ kind: 'done' })
}

export function apiKeyList(state: ShardState): Outcome {
  return { kind: 'apiKeys', rows: state.store.apiKeys() }
}
