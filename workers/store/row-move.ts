import { memberAddress } from '../../src/auth/namespace.js'
import { assert } from '../../src/base/assert.js'
import type { LoggedTableName } from '../../src/store-files/store-tables.js'
import { authMember } from '../../src/strand/organism-id.js'
import { shardOf } from '../../src/strand/placement.js'

/*
 * How a reshard moves rows to new shards. Each table says it in its spec (table-spec.ts).
 */

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

/** A shard, and the number of an agent there. */
export interface AgentNumber {
  shard: number
  no: number
}

/** Determines the new shards of rows. */
export interface Move {
  agents: { find(from: AgentNumber): AgentNumber }
  shards: number
  /** The agent in whose shard the root namespace of auth is stored. */
  rootAgent: string
}

/** The rows of the new shards for one old row. */
export type RowMover = (row: ShardRow, move: Move) => NewRow[]

/**
 * Tables that are not moved row by row: the mover of records moves the first three, and the others are
 * derived from moved rows.
 */
type OtherTable = 'blocks' | 'importedBlocks' | 'strands' | 'toldHeads' | 'expiries'

export type MovedTable = Exclude<LoggedTableName, OtherTable>

export type RowMovers = Partial<Record<MovedTable, RowMover>>

/**
 * Moves a row to the new shard of its agent, and replaces the agent number in it.
 * @param at offsets of the number
 */
export function byAgentAt(at: { key?: number; value?: number }): RowMover {
  return ({ shard: old, key: oldKey, value: oldValue }, { agents }) => {
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
}

export const byAgentInKey = byAgentAt({ key: 0 })

/** For rows that can be in any shard. */
export const byHashOfKey: RowMover = (row, { shards }) => [
  { ...row, shard: shardOf(row.key.toString('hex'), shards) },
]

/** The new shard of a namespace of auth. The id of the root namespace is empty. */
export function shardOfNamespace(namespace: string, { shards, rootAgent }: Move): number {
  return shardOf(namespace === '' ? rootAgent : memberAddress(namespace, authMember), shards)
}
