import { isNumber, isText, listOf, members } from '../../base/shape.js'
import type { Session } from './session.js'
import { clusterTables, statementsOf } from './statements.js'

/** The number of the last segment of each shard, by the shard, all of one moment. */
export async function headsOf(session: Session): Promise<Map<number, number>> {
  const rows: unknown = await session.rows(statementsOf(clusterTables).heads)
  if (!areHeads(rows)) throw new Error('Expected the ends of logs that a cluster has')
  return new Map(rows.map(({ shard, segment }) => [shard, Number(segment)]))
}

const areHeads = listOf(members<{ shard: number; segment: string }>({ shard: isNumber, segment: isText }))
