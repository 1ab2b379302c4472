import type { TableName } from '../../../src/store-files/store-tables.js'

/*
 * The logged tables, by their number in a segment (docs/adr/0041-one-log.md). A number is never given to
 * another table.
 */

/**
 * Marks a table that is derived from others. It is not logged: flushes write it, and a lost flush is
 * repeated.
 */
export const local = 'local'

/** The number of each logged table. The compiler requires an entry for every table. */
export const tableIds = {
  agents: 1,
  names: 2,
  blocks: 3,
  importedBlocks: 4,
  // Only runs of imported blocks are logged; the others are derived from the blocks.
  strands: 5,
  meta: 6,
  mutations: 7,
  erasures: 8,
  proposals: 9,
  proposalsOpen: 10,
  proposalTargets: 11,
  proposalDues: 12,
  zoneChanges: 13,
  edges: 14,
  edgesIn: 15,
  edgeHistory: 16,
  toldHeads: 17,
  idempotency: 18,
  expiries: 19,
  publicKeys: 20,
  apiKeys: 21,
  organisms: 22,
  auth: 23,
  authExpiries: 24,
  authEnded: 25,
  mails: 26,
  hashes: local,
  toldStrands: local,
  filling: local,
} as const satisfies Record<TableName, number | typeof local>

/** The tables of blocks. Their records have checksums; in all other logged tables each row has one. */
export const blockTableIds: ReadonlySet<number> = new Set([tableIds.blocks, tableIds.importedBlocks])

export type LoggedTableName = {
  [Name in TableName]: (typeof tableIds)[Name] extends number ? Name : never
}[TableName]
