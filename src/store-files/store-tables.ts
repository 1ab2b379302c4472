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

export type TableName = (typeof storeTables)[number]

export function fileName(table: TableName): string {
  return table.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

const fileNames: ReadonlySet<string> = new Set(storeTables.map(fileName))

/** Whether a table name is known. An unknown name means damage: its rows would never be found. */
export function isTableOfFile(name: string): boolean {
  return fileNames.has(name)
}
