import { isNumber, isText, listOf, members } from '../../base/shape.js'
import { isBuffer, type Session } from './session.js'
import { type ClusterStatements, clusterTables, statementsOf } from './statements.js'

/** The number of the last segment of each shard, by the shard, all of one moment. */
export async function headsOf(session: Session): Promise<Map<number, number>> {
  const rows: unknown = await session.rows(statementsOf(clusterTables).heads)
  if (!areHeads(rows)) throw new Error('Expected the ends of logs that a cluster has')
  return new Map(rows.map(({ shard, segment }) => [shard, Number(segment)]))
}

/** The hash of a segment; undefined where it is not there. */
export async function hashOf(
  session: Session,
  { hashOf: statement }: ClusterStatements,
  { shard, segment }: { shard: number; segment: number },
): Promise<Buffer | undefined> {
  const rows: unknown = await session.rows(statement, [shard, segment])
  if (!areHashes(rows)) throw new Error('Expected the hash of a segment that a cluster has')
  return rows[0]?.hash
}

const areHeads = listOf(members<{ shard: number; segment: string }>({ shard: isNumber, segment: isText }))
const areHashes = listOf(members<{ hash: Buffer }>({ hash: isBuffer }))
