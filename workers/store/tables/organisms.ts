import { isOrganismRow, type OrganismRow } from '../../../src/protocol/organism-messages.js'
import type { Environment } from '../environment.js'
import type { SetAside } from '../set-aside.js'
import { shardOfNamespace } from '../row-move.js'
import { invalidRows } from '../row-faults.js'
import type { TableSpec } from '../table-spec.js'
import { checkedRow, InvalidRow } from './row-shape.js'

/** Decodes the row of an organism. @throws InvalidRow */
export function organismRowOf(organismId: string, bytes: Uint8Array): OrganismRow {
  const row = checkedRow(`organisms ${organismId}`, bytes, isOrganismRow)
  if (row.organismId !== organismId) throw new InvalidRow(`organisms ${organismId}`)
  return row
}

/** The row of an organism; `undefined` if there is none. @throws InvalidRow */
export function findOrganism(environment: Environment, organismId: string): OrganismRow | undefined {
  const value = environment.organisms.find(Buffer.from(organismId))
  return value === undefined ? undefined : organismRowOf(organismId, value)
}

/** A page of valid rows with ids after `after`, in order, and the total number of rows. */
export function listOrganisms(
  { environment, setAside }: { environment: Environment; setAside: SetAside },
  { after, limit }: { after: string; limit: number },
): { rows: OrganismRow[]; total: number } {
  const start = Buffer.from(after === '' ? '' : `${after}\0`)
  const rows: OrganismRow[] = []
  for (const { key, value } of environment.organisms.getRange({ start })) {
    if (rows.length >= limit) break
    const row = setAside.unlessInvalid(() => organismRowOf(key.toString(), value))
    if (row !== undefined) rows.push(row)
  }
  return { rows, total: environment.organisms.getKeysCount({}) }
}

/** New organisms by their ids. */
export const organisms: TableSpec<Environment, Map<string, OrganismRow>> = {
  open: (environment) => environment,
  moves: {
    organisms: (row, move) => [{ ...row, shard: shardOfNamespace(row.key.toString(), move) }],
  },
  faults: ({ organisms: table }) => invalidRows(table, (key, value) => organismRowOf(key.toString(), value)),
  changes: () => new Map(),
  rows: ({ size }) => size,
  put(environment, changes) {
    for (const [organismId, row] of changes)
      environment.organisms.put(Buffer.from(organismId), Buffer.from(JSON.stringify(row)))
  },
}
