import { isText, listOf, members } from '../../base/shape.js'
import type { Session } from './session.js'
import type { ClusterStatements } from './statements.js'

/** What a node needs and its role may not do: `INSERT on strandfast_segments`. */
export async function missingRights(session: Session, { rights }: ClusterStatements): Promise<string[]> {
  const rows: unknown = await session.rows(rights)
  if (!areRights(rows)) throw new Error('Expected the server to tell the rights of the role')
  return rows.map(({ name, privilege }) => `${privilege} on ${name}`)
}

const areRights = listOf(members<{ name: string; privilege: string }>({ name: isText, privilege: isText }))
