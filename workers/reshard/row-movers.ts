import { memberAddress } from '../../src/auth/namespace.js'
import { assert } from '../../src/base/assert.js'
import { authMember } from '../../src/strand/organism-id.js'
import { shardOf } from '../../src/strand/placement.js'
import type { LoggedTableName } from '../store/log/table-ids.js'
import { agentRowOf, type AgentRow } from '../store/tables/agent.js'
import { namespaceOfKey } from '../store/tables/auth-table.js'
import { decodeAnswer } from '../store/tables/idempotency.js'
import { isLastReported } from '../store/tables/meta.js'
import { expiryKey } from '../store/tables/tables.js'
import type { AgentMap } from './agent-map.js'

/** A row of a shard, without its checksum. */
export interface ShardRow {
  shard: number
  key: Buffer
  value: Buffer
}

/** A row of a new shard; in the same table if `table` is absent. */
export interface NewRow extends ShardRow {
  table?: 'expiries'
}

/** Determines the new shards of rows. */
export interface Move {
  agents: AgentMap
  shards: number
  /** The agent in whose shard the root namespace of auth is stored. */
  rootAgent: string
}

/**
 * Tables that are not moved row by row: records.ts moves the first three, and the others are derived from
 * moved rows.
 */
type OtherTable = 'blocks' | 'importedBlocks' | 'strands' | 'toldHeads' | 'expiries'

export type MovedTable = Exclude<LoggedTableName, OtherTable>

/**
 * For each table, the rows of the new shards for one old row. The compiler requires an entry for every new
 * table.
 */
export const rowMovers: Record<MovedTable, (row: ShardRow, move: Move) => NewRow[]> = {
  agents: withNumber,
  names: byAgentInKey,
  // Belongs to the audit strand, which is always in the first shard.
  meta: (row) => (isLastReported(row.key) ? [{ ...row, shard: 0 }] : []),
  mutations: byAgentInKey,
  erasures: byAgentInKey,
  proposals: byAgentInKey,
  proposalsOpen: byAgentInKey,
  proposalTargets: byAgentInKey,
  // The number comes after the due time in the key.
  proposalDues: (row, move) => byAgentAt(row, move, { key: 6 }),
  zoneChanges: byAgentInKey,
  // Edges are in the shard of their source, whose number is also in the value.
  edges: (row, move) => byAgentAt(row, move, { key: 0, value: 0 }),
  edgesIn: (row, move) => byAgentAt(row, move, { value: 0 }),
  edgeHistory: (row, move) => byAgentAt(row, move, { key: 0, value: 0 }),
  idempotency: withExpiry,
  publicKeys: (row, { shards }) => [{ ...row, shard: shardOf(row.key.toString('hex'), shards) }],
  // All API keys are in the first shard.
  apiKeys: (row) => [{ ...row, shard: 0 }],
  organisms: (row, move) => [{ ...row, shard: shardOfNamespace(row.key.toString(), move) }],
  auth: (row, move) => byNamespace(row, move, 0),
  authExpiries: (row, move) => byNamespace(row, move, 6),
  authEnded: (row, move) => byNamespace(row, move, 6),
  // A mail can be in any shard.
  mails: (row, { shards }) => [{ ...row, shard: shardOf(row.key.toString('hex'), shards) }],
}

function withNumber({ shard: old, key, value }: ShardRow, { agents }: Move): NewRow[] {
  const row = agentRowOf(key.toString(), value)
  const { shard, no } = agents.find({ shard: old, no: row.no })
  const moved: AgentRow = { ...row, no }
  return [{ shard, key, value: Buffer.from(JSON.stringify(moved)) }]
}

/**
 * An idempotent answer with its current expiry and no earlier one. Answers from before answers had a
 * placement are written to all shards.
 */
function withExpiry({ key, value }: ShardRow, { shards }: Move): NewRow[] {
  const { place, expiresAtMs } = decodeAnswer(key, value)
  const to = place === undefined ? Array.from({ length: shards }, (_none, shard) => shard) : [place % shards]
  const expiry = { table: 'expiries', key: expiryKey(expiresAtMs, key), value: Buffer.alloc(0) } as const
  return to.flatMap((shard) => [
    { shard, key, value },
    { shard, ...expiry },
  ])
}

/** The new shard of a namespace of auth. The id of the root namespace is empty. */
function shardOfNamespace(namespace: string, { shards, rootAgent }: Move): number {
  return shardOf(namespace === '' ? rootAgent : memberAddress(namespace, authMember), shards)
}

function byNamespace(row: ShardRow, move: Move, at: number): NewRow[] {
  return [{ ...row, shard: shardOfNamespace(namespaceOfKey(row.key.subarray(at)), move) }]
}

function byAgentInKey(row: ShardRow, move: Move): NewRow[] {
  return byAgentAt(row, move, { key: 0 })
}

/**
 * Moves a row to the new shard of its agent, and replaces the agent number in it.
 * @param at offsets of the number
 */
function byAgentAt(
  { shard: old, key: oldKey, value: oldValue }: ShardRow,
  { agents }: Move,
  at: { key?: number; value?: number },
): NewRow[] {
  const [key, value] = [Buffer.from(oldKey), Buffer.from(oldValue)]
  const oldNo = at.key === undefined ? value.readUInt32BE(at.value) : key.readUInt32BE(at.key)
  const { shard, no } = agents.find({ shard: old, no: oldNo })
  if (at.key !== undefined) key.writeUInt32BE(no, at.key)
  if (at.value !== undefined) {
    assert(value.readUInt32BE(at.value) === oldNo, 'key and value of a row name the same agent')
    value.writeUInt32BE(no, at.value)
  }
  return [{ shard, key, value }]
}
