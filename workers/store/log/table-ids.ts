import type { TableName } from '../../../src/store-files/store-tables.js'

/*
 * The tables whose rows are in the log, by the number that stands for them in a segment (docs/adr/0041-one-log.md).
 * A number is never given to another table.
 */

/** A table that follows from others: it is written by the flush alone, and a flush that is lost is made again. */
export const local = 'local'

/** What the log has of each table; a table that is not named here does not compile. */
export const tableIds = {
  agents: 1,
  names: 2,
  blocks: 3,
  importedBlocks: 4,
  // Runs of imported blocks are logged; the others follow from the blocks.
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

/** Tables whose rows are blocks of records with their bodies. Each record has a checksum; rows of all other logged tables have one. */
export const bodied: ReadonlySet<number> = new Set([tableIds.blocks, tableIds.importedBlocks])

/** A table whose rows are in the log. */
export type LoggedTableName = {
  [Name in TableName]: (typeof tableIds)[Name] extends number ? Name : never
}[TableName]
