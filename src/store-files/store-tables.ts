/** The tables of a shard's store. */
export const storeTables = [
  'agents',
  'names',
  'blocks',
  'importedBlocks',
  'strands',
  'meta',
  'mutations',
  'erasures',
  'proposals',
  'proposalsOpen',
  'proposalTargets',
  'proposalDues',
  'zoneChanges',
  'edges',
  'edgesIn',
  'edgeHistory',
  'toldHeads',
  'toldStrands',
  'idempotency',
  'expiries',
  'publicKeys',
  'apiKeys',
  'organisms',
  'auth',
  'authExpiries',
  'authEnded',
  'mails',
  'hashes',
  'filling',
] as const

/** A table of the store. */
export type TableName = (typeof storeTables)[number]

/** What a table is called in the data file. */
export function fileName(table: TableName): string {
  return table.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

const fileNames: ReadonlySet<string> = new Set(storeTables.map(fileName))

/** Whether a data file has a table of this name. One of another name is damaged: nobody would find its rows. */
export function isTableOfFile(name: string): boolean {
  return fileNames.has(name)
}
