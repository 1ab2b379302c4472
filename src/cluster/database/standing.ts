import { fields, isNumber, isText, listOf, members } from '../../base/shape.js'
import { CheckpointTable } from './checkpoints.js'
import { isBuffer, type Session } from './session.js'
import { clusterTables, statementsOf, type ClusterStatements } from './statements.js'

/** How a shard's log stands, for people. */
export interface ShardStanding {
  shard: number
  /** The last one. */
  segment: number
  /** Its header and hash, as they are there. */
  last: { header: string; hash: Buffer }
  /** The segment of the last checkpoint. */
  checkpoint: number | undefined
  /** Of sealed rows since. */
  stateBytes: number
}

/** How a cluster stands. */
export interface ClusterState {
  /** Of its tables, indexes and all; 0 where the engine does not say. */
  bytes: number
  /** Undefined where the engine, or the rights of the role, do not show them. */
  standbys: { name: string; state: string }[] | undefined
  shards: ShardStanding[]
}

const statements = statementsOf(clusterTables)

/** Reads it. @throws Error of the database */
export async function readStanding(session: Session): Promise<ClusterState> {
  const shards: ShardStanding[] = []
  for (const [shard, segment] of await headsOf(session)) {
    const checkpoints = new CheckpointTable(session, statements, shard)
    const [checkpoint, { stateBytes }] = [await checkpoints.lastSegment(), await checkpoints.last()]
    shards.push({ shard, segment, last: await lastOf(session, shard, segment), checkpoint, stateBytes })
  }
  return { bytes: await bytesOf(session), standbys: await standbysOf(session), shards }
}

async function lastOf(session: Session, shard: number, segment: number): Promise<ShardStanding['last']> {
  const rows: unknown = await session.rows(statements.headerOf, [shard, segment])
  const [row] = areHeaders(rows) ? rows : []
  return row ?? { header: '', hash: Buffer.alloc(0) }
}

/** Engines that only speak PostgreSQL's protocol may not tell. */
async function bytesOf(session: Session): Promise<number> {
  try {
    const rows: unknown = await session.rows(statements.bytes)
    return areSizes(rows) ? rows.reduce((sum, { bytes }) => sum + Number(bytes), 0) : 0
  } catch {
    return 0
  }
}

async function standbysOf(session: Session): Promise<ClusterState['standbys']> {
  try {
    const rows: unknown = await session.rows(statements.standbys)
    return areStandbys(rows) ? rows : undefined
  } catch {
    return undefined
  }
}

const areHeaders = listOf(
  members<ShardStanding['last']>({
    header: isText,
    hash: isBuffer,
  }),
)
const areSizes = listOf(fields({ bytes: isText }))
const areStandbys = listOf(fields({ name: isText, state: isText }))

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

const areHeads = listOf(fields({ shard: isNumber, segment: isText }))
const areHashes = listOf(fields({ hash: isBuffer }))
