import type { OrganismRow } from '../../../src/protocol/organism-messages.js'
import type { Environment } from '../environment.js'

/** The row of an organism; `undefined` if there is none. */
export function findOrganism({ organisms }: Environment, organismId: string): OrganismRow | undefined {
  const value = organisms.find(Buffer.from(organismId))
  return value === undefined ? undefined : (JSON.parse(value.toString()) as OrganismRow)
}

/** A page of rows with ids after `after`, in order, and the total number of rows. */
export function listOrganisms(
  { organisms }: Environment,
  { after, limit }: { after: string; limit: number },
): { rows: OrganismRow[]; total: number } {
  const start = Buffer.from(after === '' ? '' : `${after}\0`)
  const rows: OrganismRow[] = []
  for (const { value } of organisms.getRange({ start, limit })) {
    rows.push(JSON.parse(value.toString()) as OrganismRow)
  }
  return { rows, total: organisms.getKeysCount({}) }
}

/** Writes the rows of new organisms, within the caller's transaction. */
export function putOrganisms({ organisms }: Environment, rows: ReadonlyMap<string, OrganismRow>): void {
  for (const [organismId, row] of rows) {
    organisms.put(Buffer.from(organismId), Buffer.from(JSON.stringify(row)))
  }
}
