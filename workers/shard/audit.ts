import { auditAgent } from '../../src/strand/organism-id.js'
import type { Refusal } from '../../src/base/errors.js'
import type { ApiKeyRow } from '../../src/protocol/api-key-messages.js'
import type { AuditEntry } from '../../src/protocol/audit-messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import type { CommitGroup } from './commit-group.js'
import type { PendingRecord } from '../store/write-set.js'
import { makeAgent } from '../commands/agents.js'
import { findAgent, type ShardState } from './state.js'
import type { Agent } from '../store/tables/agent.js'

/** The record of one key: made or deleted by `principal`. */
export interface ApiKeyTold {
  type: 'sys/api_key'
  body: Record<string, unknown>
}

/** The agent of the server's audit strand, made if it does not exist; 503 clock_skew. */
export function auditStrand(state: ShardState, group: CommitGroup): Agent | Refusal {
  const found = findAgent(state, group, auditAgent)
  return found ?? makeAgent(state, { agent: auditAgent, zone: 'immutable_core' }, group)
}

/** Appends a record to the server's audit strand; or nothing, 503 clock_skew. */
export function tellAudit(
  state: ShardState,
  { type, body }: AuditEntry | ApiKeyTold,
  group: CommitGroup,
): PendingRecord | Refusal {
  // One of them for the genesis record, if this is the first record.
  const skew = group.reserve(2)
  if (skew !== undefined) return skew
  const agent = auditStrand(state, group)
  if ('code' in agent) return agent
  return group.append(agent, { type, body: Buffer.from(canonicalJson(body)), signing: 'record' })
}

/**
 * What the audit strand says of a key (docs/FORMAT.md, The audit strand): what it may do and whose it is. Never the
 * key, its hash or its name, which is free text and could not be erased.
 */
export function apiKeyTold(
  change: 'made' | 'deleted',
  row: KeyFacts,
  author: Record<string, unknown>,
): ApiKeyTold {
  return { type: 'sys/api_key', body: { change, ...keyFacts(row), ...author } }
}

/** What a strand says of a key. */
type KeyFacts = Pick<ApiKeyRow, 'keyId' | 'scopes' | 'agents' | 'madeBy' | 'line' | 'expiresAtMs'>

/** What a strand says of a key, under the names that it uses. */
export function keyFacts({
  keyId,
  scopes,
  agents,
  madeBy,
  line,
  expiresAtMs,
}: KeyFacts): Record<string, unknown> {
  return { key_id: keyId, scopes, agents, made_by: madeBy, line, expires_at_ms: expiresAtMs ?? null }
}

/** Adds a key to the group, and to the changes that are sent to the front thread. */
export function putApiKey(group: CommitGroup, row: ApiKeyRow): void {
  group.apiKeys.set(row.keyId, row)
  group.apiKeyChanges.made.push(row)
}

/** A key as this group leaves it. */
export function keyAt(state: ShardState, keyId: string, group: CommitGroup): ApiKeyRow | undefined {
  return group.apiKeys.has(keyId) ? group.apiKeys.get(keyId) : state.store.apiKeys.find(keyId)
}
