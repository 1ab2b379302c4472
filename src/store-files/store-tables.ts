/**
 * Marks a table that is derived from others. It is not logged: flushes write it, and a lost flush is
 * repeated.
 */
export const local = 'local'

/**
 * The tables of a shard's store. Logged ones have a number, which segments name them by
 * (docs/adr/0041-one-log.md) and which is never given to another table.
 */
export const tableIds = {
  /** agent name → agent row. */
  agents: 1,
  /** agent number → agent name. */
  names: 2,
  /** block number → block. */
  blocks: 3,
  /** block number, from `importedBlocksFrom` on → block of imported records. */
  importedBlocks: 4,
  /**
   * agent number, first seq → location of these records; only `StrandRuns` reads and writes it. Only runs of
   * imported blocks are logged; the others are derived from the blocks.
   */
  strands: 5,
  /** Facts about the other tables and about the store. */
  meta: 6,
  /**
   * agent number, seq of a record, seq of the mutation → 1 if the record was deleted, 0 if it was restored.
   */
  mutations: 7,
  /** agent number, seq → body commitment of an erased record. */
  erasures: 8,
  /** agent number, seq → proposal. */
  proposals: 9,
  /** agent number, seq of an open proposal → nothing. */
  proposalsOpen: 10,
  /** agent number, target of an open proposal → its seq. */
  proposalTargets: 11,
  /** due time, agent number, seq of an open proposal → nothing. */
  proposalDues: 12,
  /** agent number, seq of a `sys/zone` record → the new zone. */
  zoneChanges: 13,
  /** agent number of the source, type, destination → current state of the edge. */
  edges: 14,
  /** destination, type, source → the same state. */
  edgesIn: 15,
  /** key in `edges`, clock → state of the edge before a change. */
  edgeHistory: 16,
  /** seq of a record of the server log, position in it → the logged head. */
  toldHeads: 17,
  /** runs of the hash index from a strand to its rows in `toldHeads`. */
  toldStrands: local,
  /** caller and idempotency key → answer. */
  idempotency: 18,
  /** expiry, idempotency key → nothing. */
  expiries: 19,
  /** public key → agent name. */
  publicKeys: 20,
  /** key id → scoped API key. */
  apiKeys: 21,
  /** organism id → organism. */
  organisms: 22,
  /** namespace, kind, id → a row of auth state. */
  auth: 23,
  /** expiry, key of a row of auth state → nothing. */
  authExpiries: 24,
  /** expiry, namespace, id → revocation of a session, token or user. */
  authEnded: 25,
  /** due time, id → mail in the outbox. */
  mails: 26,
  /** runs of the hash index. */
  hashes: local,
  /** agent number, level, index → root of a complete subtree of the strand's tree. */
  subtrees: local,
  /** Temporary rows that overwrite free pages which held erased bodies. */
  filling: local,
} as const

export type TableName = keyof typeof tableIds

export type LoggedTableName = {
  [Name in TableName]: (typeof tableIds)[Name] extends number ? Name : never
}[TableName]

const isTableName = (name: string): name is TableName => Object.hasOwn(tableIds, name)

export const storeTables: readonly TableName[] = Object.keys(tableIds).filter(isTableName)

/** The tables of blocks. Their records have checksums; in all other logged tables each row has one. */
export const blockTableIds: ReadonlySet<number> = new Set([tableIds.blocks, tableIds.importedBlocks])

export function fileName(table: TableName): string {
  return table.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

const fileNames: ReadonlySet<string> = new Set(storeTables.map(fileName))

/** Whether a table name is known. An unknown name means damage: its rows would never be found. */
export function isTableOfFile(name: string): boolean {
  return fileNames.has(name)
}
