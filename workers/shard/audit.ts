import { auditAgent } from '../../src/strand/organism-id.js'
import type { Refusal } from '../../src/base/errors.js'
import type { ApiKeyRow } from '../../src/protocol/api-key-messages.js'
import type { AuditEntry } from '../../src/protocol/audit-messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import type { CommitGroup } from './commit-group.js'
import type { PendingRecord } from '../store/write-set.js'
import { makeAgent } from './new-agent.js'
import { findAgent, type ShardState } from './state.js'
import type { Agent } from '../store/tables/agent.js'
import { apiKeys } from '../store/tables/api-keys.js'

/** An audit record that an API key was created or deleted. */
export interface ApiKeyAuditEntry {
  type: 'sys/api_key'
  body: Record<string, unknown>
}

/** The agent of the server's audit strand, created if it does not exist; 503 clock_skew. */
export function auditStrand(state: ShardState, group: CommitGroup): Agent | Refusal {
  const found = findAgent(state, group, auditAgent)
  return found ?? makeAgent(state, { agent: auditAgent, zone: 'immutable_core' }, group)
}

/** Appends a record to the server's audit strand; 503 clock_skew. */
export function appendAudit(
  state: ShardState,
  { type, body }: AuditEntry | ApiKeyAuditEntry,
  group: CommitGroup,
): PendingRecord | Refusal {
  // The second reading is for the genesis record, if the strand does not exist yet.
  const skew = group.reserve(2)
  if (skew !== undefined) return skew
  const agent = auditStrand(state, group)
  if ('code' in agent) return agent
  return group.append(agent, { type, body: Buffer.from(canonicalJson(body)), signing: 'record' })
}

/**
 * The audit record of an API key (docs/FORMAT.md, The audit strand): its permissions and its owner. It never
 * contains the key, its hash or its name, which is free text and could not be erased.
 */
export function apiKeyAuditEntry(
  change: 'made' | 'deleted',
  row: Pick<ApiKeyRow, 'keyId' | 'scopes' | 'agents' | 'madeBy' | 'line' | 'expiresAtMs'>,
  author: Record<string, unknown>,
): ApiKeyAuditEntry {
  const { keyId, scopes, agents, madeBy, line, expiresAtMs = null } = row
  const key = { key_id: keyId, scopes, agents, made_by: madeBy, line, expires_at_ms: expiresAtMs }
  return { type: 'sys/api_key', body: { change, ...key, ...author } }
}

/** Adds an API key to the group and to the changes that are sent to the fronts. */
export function putApiKey(group: CommitGroup, row: ApiKeyRow): void {
  group.changes.of(apiKeys).rows.set(row.keyId, row)
  group.changes.of(apiKeys).shown.created.push(row)
}

/** An API key as of this group; undefined if it does not exist or the group deletes it. */
export function keyAt(state: ShardState, keyId: string, group: CommitGroup): ApiKeyRow | undefined {
  const rows = group.changes.find(apiKeys)?.rows
  return rows?.has(keyId) === true ? rows.get(keyId) : state.store.tables.of(apiKeys).find(keyId)
}
