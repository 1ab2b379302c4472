import { isOrganismRow, type OrganismRow } from '../../../src/protocol/organism-messages.js'
import type { Environment } from '../environment.js'
import type { SetAside } from '../set-aside.js'
import { checkedRow, InvalidRow } from './row-shape.js'

/** Decodes the row of an organism. @throws InvalidRow */
export function organismRowOf(organismId: string, bytes: Uint8Array): OrganismRow {
  const row = checkedRow(`organisms ${organismId}`, bytes, isOrganismRow)
  if (row.organismId !== organismId) throw new InvalidRow(`organisms ${organismId}`)
  return row
}

/** The row of an organism; `undefined` if there is none. @throws InvalidRow */
export function findOrganism({ organisms }: Environment, organismId: string): OrganismRow | undefined {
  const value = organisms.find(Buffer.from(organismId))
  return value === undefined ? undefined : organismRowOf(organismId, value)
}

/** A page of valid rows with ids after `after`, in order, and the total number of rows. */
export function listOrganisms(
  { environment: { organisms }, setAside }: { environment: Environment; setAside: SetAside },
  { after, limit }: { after: string; limit: number },
): { rows: OrganismRow[]; total: number } {
  const start = Buffer.from(after === '' ? '' : `${after}\0`)
  const rows: OrganismRow[] = []
  for (const { key, value } of organisms.getRange({ start })) {
    if (rows.length >= limit) break
    const row = setAside.unlessInvalid(() => organismRowOf(key.toString(), value))
    if (row !== undefined) rows.push(row)
  }
  return { rows, total: organisms.getKeysCount({}) }
}

/** Writes the rows of new organisms, within the caller's transaction. */
export function putOrganisms({ organisms }: Environment, rows: ReadonlyMap<string, OrganismRow>): void {
  for (const [organismId, row] of rows) {
    organisms.put(Buffer.from(organismId), Buffer.from(JSON.stringify(row)))
  }
}
