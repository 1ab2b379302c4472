import { DatabaseError } from 'pg'
import { clusterFormat, addFacts, makeReady, readFacts, type ClusterFacts } from './facts.js'
import type { StoredSegment } from './register.js'
import type { Parameter, Session } from './session.js'
import { clusterTables, statementsOf } from './statements.js'
import { requireTables } from './tables.js'

const statements = statementsOf(clusterTables)

/** The properties of a new cluster, except those that this version sets. */
export type NewCluster = Omit<ClusterFacts, 'format' | 'revision'>

/** The cluster that a database holds. @param key of the row MACs @throws OtherVersion, UnverifiedRow */
export async function readClusterFacts(session: Session, key: Uint8Array): Promise<ClusterFacts | undefined> {
  return readFacts(session, statements, key)
}

/** Removes an incomplete cluster, so that it can be created again. */
export async function removeUnfinished(session: Session, id: string, key: Uint8Array): Promise<void> {
  const facts = await readFacts(session, statements, key)
  if (facts?.id !== id || facts.ready) throw new Error('another process has completed its cluster')
  await session.write(statements.cluster.remove, [id])
}

/** Marks a cluster as complete: from now on servers can join it as nodes. */
export async function finishCluster(session: Session, id: string, key: Uint8Array): Promise<void> {
  const facts = await readFacts(session, statements, key)
  if (facts?.id !== id) throw new Error('another process has replaced its cluster')
  await makeReady(session, statements, { facts, key })
}

/**
 * Creates the tables of a cluster, writes segment 0 of each shard's log, and writes the cluster's row last.
 * @param first segment 0 of each shard
 * @param key of the row MACs
 * @throws Error if the database holds a cluster, or if the database fails
 */
export async function createCluster(
  session: Session,
  { cluster, key }: { cluster: NewCluster; key: Uint8Array },
  first: readonly StoredSegment[],
): Promise<void> {
  if ((await readFacts(session, statements, key)) !== undefined) throw new Error('it holds a cluster already')
  await makeTables(session)
  // Some may have existed, and the database may change what is created.
  await requireTables(session, clusterTables)
  // Leftovers of an interrupted attempt.
  for (const statement of statements.empty) await session.write(statement, [])
  for (const segment of first) await begin(session, segment)
  const facts = { format: clusterFormat, revision: FIRST_REVISION, ...cluster }
  await addFacts(session, statements, { facts, key })
}

const FIRST_REVISION = 1

async function makeTables(session: Session): Promise<void> {
  for (const statement of statements.create) {
    try {
      await session.write(statement, [])
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.code !== DUPLICATE_TABLE) throw error
    }
  }
}

async function begin(session: Session, segment: StoredSegment): Promise<void> {
  const { shard, number, hash, header, parts } = segment
  const [part] = parts
  const row: Parameter[] = [shard, number, hash, header, part?.blocks ?? Buffer.alloc(0), part?.state ?? null]
  const { warned } = await session.write(statements.begin, row)
  if (warned) throw new Error('it stopped waiting for its standby')
}

const DUPLICATE_TABLE = '42P07'
