import { createHash } from 'node:crypto'
import { refuse } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits.js'
import type { ApiKeyRow } from '../../src/protocol/api-key-messages.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import type { ApiKeyDeleted } from '../../src/wire/api-keys.js'
import type { CommitGroup } from '../commit-group.js'
import type { Decision, ShardState } from '../shard-state.js'

const KEY_BYTES = 32
const KEY_ID_BYTES = 12

/** Makes a scoped key, of which only the SHA-256 is kept (contract.md 1, Scoped keys); 413 past `apiKeysMax` keys. */
export function apiKeyCreate(
  state: ShardState,
  { name, scopes, agents }: CommandOf<'apiKeyCreate'>,
  group: CommitGroup,
): Decision {
  if (state.store.apiKeys().length + group.apiKeys.size >= limits.apiKeysMax) {
    return refuse('too_large', `Expected at most ${limits.apiKeysMax} API keys`)
  }
  const key = `sf_key_${Buffer.from(state.random(KEY_BYTES)).toString('base64url')}`
  const row: ApiKeyRow = {
    keyId: `key_${Buffer.from(state.random(KEY_ID_BYTES)).toString('hex')}`,
    name,
    scopes,
    agents,
    digest: createHash('sha256').update(key).digest('hex'),
    createdAtMs: state.clock(),
  }
  group.apiKeys.set(row.keyId, row)
  return () => ({ kind: 'apiKeyMade', row, key, live: true })
}

export function apiKeyDelete(
  state: ShardState,
  { keyId }: CommandOf<'apiKeyDelete'>,
  group: CommitGroup,
): Decision {
  const there = group.apiKeys.has(keyId)
    ? group.apiKeys.get(keyId) !== undefined
    : state.store.apiKeys().some((row) => row.keyId === keyId)
  if (!there) return refuse('not_found', 'Expected the key_id of an API key')
  group.apiKeys.set(keyId, undefined)
  const answer: ApiKeyDeleted = { deleted: true, key_id: keyId }
  return () => ({ kind: 'reply', status: 200, body: JSON.stringify(answer) })
}

export function apiKeyList(state: ShardState): Outcome {
  return { kind: 'apiKeys', rows: state.store.apiKeys() }
}
