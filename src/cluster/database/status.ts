import { fields, isNumber, isText, listOf, members } from '../../base/shape.js'
import { CheckpointTable } from './checkpoints.js'
import { isBuffer, type Session } from './session.js'
import { clusterTables, statementsOf, type ClusterStatements } from './statements.js'

/** The status of a shard's log, for people. */
export interface ShardLogStatus {
  shard: number
  /** The last segment. */
  segment: number
  /** Header and hash of that segment, as stored. */
  last: { header: string; hash: Buffer }
  /** The segment of the last checkpoint. */
  checkpoint: number | undefined
  /** Bytes of sealed rows since the checkpoint. */
  stateBytes: number
}

export interface ClusterStatus {
  /** Size of the tables with indexes; 0 if the engine does not report it. */
  bytes: number
  /** Undefined if the engine or the role's privileges do not show standbys. */
  standbys: { name: string; state: string }[] | undefined
  shards: ShardLogStatus[]
}

const statements = statementsOf(clusterTables)

/** Reads the status. @throws Error of the database */
export async function readClusterStatus(session: Session): Promise<ClusterStatus> {
  const shards: ShardLogStatus[] = []
  for (const [shard, segment] of await headsOf(session)) {
    const checkpoints = new CheckpointTable(session, statements, shard)
    const [checkpoint, { stateBytes }] = [await checkpoints.lastSegment(), await checkpoints.last()]
    shards.push({ shard, segment, last: await lastOf(session, shard, segment), checkpoint, stateBytes })
  }
  return { bytes: await bytesOf(session), standbys: await standbysOf(session), shards }
}

async function lastOf(session: Session, shard: number, segment: number): Promise<ShardLogStatus['last']> {
  const rows: unknown = await session.rows(statements.headerOf, [shard, segment])
  const [row] = areHeaders(rows) ? rows : []
  return row ?? { header: '', hash: Buffer.alloc(0) }
}

/** Engines that only speak PostgreSQL's protocol may not report sizes. */
async function bytesOf(session: Session): Promise<number> {
  try {
    const rows: unknown = await session.rows(statements.bytes)
    return areSizes(rows) ? rows.reduce((sum, { bytes }) => sum + Number(bytes), 0) : 0
  } catch {
    return 0
  }
}

async function standbysOf(session: Session): Promise<ClusterStatus['standbys']> {
  try {
    const rows: unknown = await session.rows(statements.standbys)
    return areStandbys(rows) ? rows : undefined
  } catch {
    return undefined
  }
}

const areHeaders = listOf(
  members<ShardLogStatus['last']>({
    header: isText,
    hash: isBuffer,
  }),
)
const areSizes = listOf(fields({ bytes: isText }))
const areStandbys = listOf(fields({ name: isText, state: isText }))

/** The number of the last segment of each shard, read in one snapshot. */
export async function headsOf(session: Session): Promise<Map<number, number>> {
  const rows: unknown = await session.rows(statementsOf(clusterTables).heads)
  if (!areHeads(rows)) throw new Error('Malformed log-head row')
  return new Map(rows.map(({ shard, segment }) => [shard, Number(segment)]))
}

/** The hash of a segment; undefined if the log does not have it. */
export async function hashOf(
  session: Session,
  { hashOf: statement }: ClusterStatements,
  { shard, segment }: { shard: number; segment: number },
): Promise<Buffer | undefined> {
  const rows: unknown = await session.rows(statement, [shard, segment])
  if (!areHashes(rows)) throw new Error('Malformed segment hash row')
  return rows[0]?.hash
}

const areHeads = listOf(fields({ shard: isNumber, segment: isText }))
const areHashes = listOf(fields({ hash: isBuffer }))
