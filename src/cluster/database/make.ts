import { DatabaseError } from 'pg'
import { clusterFormat, addFacts, makeReady, readFacts, type ClusterFacts } from './facts.js'
import type { StoredSegment } from './register.js'
import type { Parameter, Session } from './session.js'
import { type ClusterStatements, clusterTables, statementsOf } from './statements.js'

const statements = statementsOf(clusterTables)

/** What makes a cluster what it is, but for what this version gives it. */
export type NewCluster = Omit<ClusterFacts, 'format' | 'revision'>

/** What the tables of a database hold. @param key of the MACs of rows @throws OtherVersion, UntrueRow */
export async function factsOf(session: Session, key: Uint8Array): Promise<ClusterFacts | undefined> {
  return readFacts(session, statements, key)
}

/** Removes a cluster that is not whole, so that it can be made again. */
export async function removeUnfinished(session: Session, id: string, key: Uint8Array): Promise<void> {
  const facts = await readFacts(session, statements, key)
  if (facts?.id !== id || facts.ready) throw new Error('its cluster was made meanwhile')
  await session.write(statements.cluster.remove, [id])
}

/** Says that a cluster is whole: from then on servers are its nodes. */
export async function finishCluster(session: Session, id: string, key: Uint8Array): Promise<void> {
  const facts = await readFacts(session, statements, key)
  if (facts?.id !== id) throw new Error('its cluster was replaced meanwhile')
  await makeReady(session, statements, { facts, key })
}

/**
 * Makes the tables of a cluster, empty but for the beginning of each shard's log, and its row last.
 * @param first segment 0 of each shard
 * @param key of the MACs of rows
 * @throws Error where the database holds a cluster, or of the database
 */
export async function makeCluster(
  session: Session,
  { cluster, key }: { cluster: NewCluster; key: Uint8Array },
  first: readonly StoredSegment[],
): Promise<void> {
  await fillTables({ session, statements }, { cluster, key }, first)
}

/** The same in tables of any names. */
export async function fillTables(
  { session, statements: into }: { session: Session; statements: ClusterStatements },
  { cluster, key }: { cluster: NewCluster; key: Uint8Array },
  first: readonly StoredSegment[],
): Promise<void> {
  if ((await readFacts(session, into, key)) !== undefined) throw new Error('it holds a cluster already')
  await makeTables(session, into)
  // What an attempt that was cut off has left.
  for (const statement of into.empty) await session.write(statement, [])
  for (const segment of first) await begin(session, into, segment)
  const facts = { format: clusterFormat, revision: FIRST_REVISION, ...cluster }
  await addFacts(session, into, { facts, key })
}

const FIRST_REVISION = 1

async function makeTables(session: Session, { create }: ClusterStatements): Promise<void> {
  for (const statement of create) {
    try {
      await session.write(statement, [])
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.code !== DUPLICATE_TABLE) throw error
    }
  }
}

async function begin(session: Session, into: ClusterStatements, segment: StoredSegment): Promise<void> {
  const { shard, number, hash, header, parts } = segment
  const [part] = parts
  const row: Parameter[] = [shard, number, hash, header, part?.blocks ?? Buffer.alloc(0), part?.state ?? null]
  const { warned } = await session.write(into.begin, row)
  if (warned) throw new Error('it stopped waiting for its standby')
}

const DUPLICATE_TABLE = '42P07'
