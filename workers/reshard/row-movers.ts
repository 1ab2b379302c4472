import { memberAddress } from '../../src/auth/namespace.js'
import { assert } from '../../src/base/assert.js'
import { authMember } from '../../src/strand/organism-id.js'
import { shardOf } from '../../src/strand/placement.js'
import { namespaceOfKey } from '../store/tables/auth-table.js'
import type { KeptAnswer } from '../store/tables/idempotency.js'
import type { AgentMap } from './agent-map.js'
import type { TableName } from './row-writer.js'

/** A row of an old shard. */
export interface OldRow {
  shard: number
  key: Buffer
  value: Buffer
}

/** A row of a new shard. */
export interface NewRow {
  shard: number
  key: Buffer
  value: Buffer
}

/** What decides where rows go. */
export interface Move {
  agents: AgentMap
  shards: number
  /** The agent whose shard keeps the root namespace of auth. */
  rootAgent: string
}

/** Tables that are not moved row by row: they follow from others, or are moved by reshard.ts or by the log's writer. */
type OtherTable =
  | 'meta'
  | 'agents'
  | 'names'
  | 'blocks'
  | 'importedBlocks'
  | 'strands'
  | 'hashes'
  | 'filling'
  | 'toldHeads'
  | 'toldStrands'
  | 'idempotency'
  | 'expiries'

/** Tables that are moved row by row. */
export type MovedTable = Exclude<TableName, OtherTable>

/** To which shard a row of each table moves. When a later version adds a table, the compiler demands an entry here. */
export const rowMovers: Record<MovedTable, (row: OldRow, move: Move) => NewRow> = {
  mutations: byAgentInKey,
  erasures: byAgentInKey,
  proposals: byAgentInKey,
  proposalsOpen: byAgentInKey,
  proposalTargets: byAgentInKey,
  // The number comes after the due time in the key.
  proposalDues: (row, move) => byAgentAt(row, move, { key: 6 }),
  zoneChanges: byAgentInKey,
  // The state of an edge names its source, whose shard keeps it.
  edges: (row, move) => byAgentAt(row, move, { key: 0, value: 0 }),
  edgesIn: (row, move) => byAgentAt(row, move, { value: 0 }),
  edgeHistory: (row, move) => byAgentAt(row, move, { key: 0, value: 0 }),
  publicKeys: (row, { shards }) => ({ ...row, shard: shardOf(row.key.toString('hex'), shards) }),
  // The first shard has them all.
  apiKeys: (row) => ({ ...row, shard: 0 }),
  organisms: (row, move) => ({ ...row, shard: shardOfNamespace(row.key.toString(), move) }),
  auth: (row, move) => byNamespace(row, move, 0),
  authExpiries: (row, move) => byNamespace(row, move, 6),
  authEnded: (row, move) => byNamespace(row, move, 6),
  // Any shard sends a mail.
  mails: (row, { shards }) => ({ ...row, shard: shardOf(row.key.toString('hex'), shards) }),
}

/** The new shard of an answer by Idempotency-Key; every shard for one from before answers named their place. */
export function shardOfAnswer({ place }: Partial<KeptAnswer>, { shards }: Move): number | 'all' {
  return place === undefined ? 'all' : place % shards
}

/** The new shard of a namespace of auth; the root one's id is empty. */
function shardOfNamespace(namespace: string, { shards, rootAgent }: Move): number {
  return shardOf(namespace === '' ? rootAgent : memberAddress(namespace, authMember), shards)
}

function byNamespace(row: OldRow, move: Move, at: number): NewRow {
  return { ...row, shard: shardOfNamespace(namespaceOfKey(row.key.subarray(at)), move) }
}

function byAgentInKey(row: OldRow, move: Move): NewRow {
  return byAgentAt(row, move, { key: 0 })
}

/** Moves a row to the shard of the agent whose number it carries, under the agent's number there. */
function byAgentAt(
  { shard, key, value }: OldRow,
  { agents }: Move,
  at: { key?: number; value?: number },
): NewRow {
  const old = at.key === undefined ? value.readUInt32BE(at.value) : key.readUInt32BE(at.key)
  const from = { shard, no: old }
  const no = agents.numberOf(from)
  const moved = { shard: agents.shardOf(from), key: Buffer.from(key), value: Buffer.from(value) }
  if (at.key !== undefined) moved.key.writeUInt32BE(no, at.key)
  if (at.value !== undefined) {
    assert(value.readUInt32BE(at.value) === old, 'key and value of a row name the same agent')
    moved.value.writeUInt32BE(no, at.value)
  }
  return moved
}
