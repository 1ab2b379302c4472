import { createHash } from 'node:crypto'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import type { ApiKeyRow } from '../../src/protocol/api-key-messages.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import type { ApiKeyDeleted } from '../../src/wire/api-keys.js'
import { apiKeyAuditEntry, auditStrand, keyAt, putApiKey, appendAudit } from '../shard/audit.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { makeProposal, proposedAs, recordsToPropose } from '../mutations/propose.js'
import type { Decision, ShardState } from '../shard/state.js'
import { isAdmin, apiKeys } from '../store/tables/api-keys.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** API keys. */
export const apiKeyCommands = {
  writes: {
    apiKeyCreate: { decide: apiKeyCreate },
    apiKeyDelete: { decide: apiKeyDelete },
    apiKeysUsed: { decide: apiKeysUsed },
  },
  reads: {
    apiKeyList: { answer: apiKeyList },
  },
} satisfies FeatureCommands

const KEY_BYTES = 32
const KEY_ID_BYTES = 12
const KEY_ID_PREFIX = 'key_'

/** From this number of admin keys on, no single admin can create a key that may decide proposals. */
const ADMINS_TO_DECIDE = 2

/**
 * Creates an API key, of which only the SHA-256 is stored, and records it on the audit strand. If there are
 * two admin keys, a key that may decide proposals is itself a proposal (docs/adr/0033-lines-of-keys.md). 413
 * beyond `apiKeysMax` keys, 503 clock_skew, overloaded.
 */
function apiKeyCreate(state: ShardState, command: CommandOf<'apiKeyCreate'>, group: CommitGroup): Decision {
  if (
    state.store.tables.of(apiKeys).count + (group.changes.find(apiKeys)?.rows.size ?? 0) >=
    limits.apiKeysMax
  ) {
    return refuse(
      'too_large',
      `The server has ${limits.apiKeysMax} API keys, which is the maximum: delete one first`,
    )
  }
  const creator = creatorOf(state, command.maker, group)
  if (creator !== undefined && 'code' in creator) return creator
  const { row, key } = newKey(state, command, creator)
  if (mayDecide(row) && adminCount(state, group) >= ADMINS_TO_DECIDE) {
    return proposeKey(state, { row, key, line: creator?.line }, group)
  }
  const record = appendAudit(state, apiKeyAuditEntry('made', row, { principal: command.maker }), group)
  if ('code' in record) return record
  putApiKey(group, row)
  return () => ({ kind: 'apiKeyMade', row, key, live: true })
}

/** The API key that creates another; undefined for the root key, 401 if it was deleted. */
function creatorOf(state: ShardState, keyId: string, group: CommitGroup): ApiKeyRow | undefined | Refusal {
  if (!keyId.startsWith(KEY_ID_PREFIX)) return undefined
  return keyAt(state, keyId, group) ?? refuse('unauthorized', 'The key was deleted')
}

function newKey(
  state: ShardState,
  { name, scopes, agents, expiresInSecs, maker: madeBy }: CommandOf<'apiKeyCreate'>,
  creator: ApiKeyRow | undefined,
): { row: ApiKeyRow; key: string } {
  const createdAtMs = state.clock()
  const key = `sf_key_${Buffer.from(state.random(KEY_BYTES)).toString('base64url')}`
  const keyId = `${KEY_ID_PREFIX}${Buffer.from(state.random(KEY_ID_BYTES)).toString('hex')}`
  const requestedMs = expiresInSecs === undefined ? Infinity : createdAtMs + expiresInSecs * 1_000
  // A key cannot create a key that expires later than itself.
  const expiresAtMs = Math.min(requestedMs, creator?.expiresAtMs ?? Infinity)
  const digest = createHash('sha256').update(key).digest('hex')
  const row: ApiKeyRow = {
    keyId,
    name,
    scopes,
    agents,
    digest,
    createdAtMs,
    madeBy,
    line: creator?.line ?? keyId,
    ...(expiresAtMs !== Infinity && { expiresAtMs }),
  }
  return { row, key }
}

function mayDecide({ scopes }: ApiKeyRow): boolean {
  return scopes.includes('admin:*') || scopes.includes('proposals:decide')
}

/** The number of unexpired admin keys as of a commit group. */
function adminCount(state: ShardState, group: CommitGroup): number {
  const admins = new Map(state.store.tables.of(apiKeys).admins)
  for (const [keyId, row] of group.changes.find(apiKeys)?.rows ?? []) {
    if (row === undefined) admins.delete(keyId)
    else if (isAdmin(row)) admins.set(keyId, row)
  }
  const nowMs = state.clock()
  return [...admins.values()].filter(({ expiresAtMs = Infinity }) => expiresAtMs > nowMs).length
}

/** Proposes a key and shows it to the proposer; it works once the proposal is applied. */
function proposeKey(
  state: ShardState,
  { row, key, line }: { row: ApiKeyRow; key: string; line: string | undefined },
  group: CommitGroup,
): Decision {
  // One more reading for the genesis record of the audit strand.
  const skew = group.reserve(1 + recordsToPropose)
  if (skew !== undefined) return skew
  const agent = auditStrand(state, group)
  if ('code' in agent) return agent
  const { createdAtMs: _made, ...about } = row
  const mutation = { action: 'make_api_key' as const, ...about }
  const author = { principal: row.madeBy, ...(line !== undefined && line !== row.madeBy && { line }) }
  const proposal = makeProposal(state, { agent, mutation, ...author }, group)
  if ('code' in proposal) return proposal
  return () => ({ kind: 'apiKeyMade', row, key, live: false, proposed: proposedAs(proposal) })
}

/** Deletes an API key and records it on the audit strand; 404 not_found, 503 clock_skew. */
function apiKeyDelete(
  state: ShardState,
  { keyId, maker }: CommandOf<'apiKeyDelete'>,
  group: CommitGroup,
): Decision {
  const row = keyAt(state, keyId, group)
  if (row === undefined) return refuse('not_found', `API key "${keyId}" not found`)
  const record = appendAudit(state, apiKeyAuditEntry('deleted', row, { principal: maker }), group)
  if ('code' in record) return record
  group.changes.of(apiKeys).rows.set(keyId, undefined)
  group.changes.of(apiKeys).shown.removed.push(keyId)
  const answer: ApiKeyDeleted = { deleted: true, key_id: keyId }
  return () => ({ kind: 'reply', status: 200, body: JSON.stringify(answer) })
}

/** Stores when API keys were last used; deleted keys are ignored. */
function apiKeysUsed(state: ShardState, { uses }: CommandOf<'apiKeysUsed'>, group: CommitGroup): Decision {
  for (const [keyId, lastUsedAtMs] of uses) {
    const row = keyAt(state, keyId, group)
    if (row !== undefined) group.changes.of(apiKeys).rows.set(keyId, { ...row, lastUsedAtMs })
  }
  return () => ({ kind: 'done' })
}

/** A page of API keys by id; it ends early at `scannedRowBytesMax` bytes. */
function apiKeyList(
  { store: { tables } }: ShardState,
  { after, limit, keyId }: CommandOf<'apiKeyList'>,
): Outcome {
  const keys = tables.of(apiKeys)
  if (keyId === undefined) return { kind: 'apiKeys', ...keys.page({ after, limit }) }
  const row = keys.find(keyId)
  return { kind: 'apiKeys', rows: row === undefined ? [] : [row], more: false }
}
