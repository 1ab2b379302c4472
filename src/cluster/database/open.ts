import { fields, isText, listOf } from '../../base/shape.js'
import { readFacts, type ClusterFacts } from './facts.js'
import { findLosses } from './loss.js'
import { examineServer, examineSessions, openDurable, type ServerFacts } from './server-check.js'
import { Session } from './session.js'
import { clusterTables, statementsOf } from './statements.js'
import { examineTables } from './tables.js'
import { describeDatabaseError, isUnfit, OtherVersion, UnfitServer } from './database-errors.js'

export interface DatabaseSettings {
  /** Addresses of the database servers. */
  urls: readonly string[]
  /** Whether a database without a synchronous standby is accepted. */
  unreplicated: boolean
  /** SERVICE_ENV. */
  environment: 'development' | 'production'
  /** The data directory, if it belongs to a node of the cluster with this id. */
  directoryOf?(id: string): string | undefined
}

/** A connection to the database, or why there is none; sentences without a full stop. */
export type DatabaseConnection =
  | { ok: true; session: Session; server: ServerFacts; warnings: string[] }
  | { ok: false; detail: string; because: 'away' | 'unfit' }

/** A cluster that can serve, or why it cannot. */
export type ClusterOpening =
  | { ok: true; facts: ClusterFacts; warnings: string[] }
  | { ok: false; detail: string; because: 'away' | 'unfit' }

const statements = statementsOf(clusterTables)

/** Connects to the database of a cluster and checks that it keeps what it acknowledges. */
export async function connectDatabase(settings: DatabaseSettings): Promise<DatabaseConnection> {
  try {
    const { session, server } = await openDurable(settings.urls)
    const lack = lackOf(server, settings)
    if (lack === undefined) return { ok: true, session, server, warnings: warningsOf(server) }
    session.drop()
    throw new UnfitServer(lack)
  } catch (error) {
    return useless(error)
  }
}

/**
 * Connects to the database of a cluster to read from it, whatever is wrong with it: its data may have to be
 * moved to another one.
 */
export async function connectToRead(urls: readonly string[]): Promise<DatabaseConnection> {
  try {
    const session = await Session.open(urls)
    const server = examineServer(session)
    return {
      ok: true,
      session,
      server,
      warnings: server.faults.map((fault) => `the cluster’s database: ${fault}`),
    }
  } catch (error) {
    return useless(error)
  }
}

/** Opens the cluster. @param settings with the key of the row MACs */
export async function openCluster(
  settings: DatabaseSettings & { rowKey: Uint8Array },
): Promise<ClusterOpening> {
  const reached = await connectDatabase(settings)
  if (!reached.ok) return reached
  const { session, warnings } = reached
  try {
    await examineSessions(settings.urls)
    const facts = await factsOf(session, settings.rowKey)
    const fault = faultOf(facts) ?? (await lackOfRights(session))
    if (facts === undefined || fault !== undefined)
      return { ok: false, because: 'unfit', detail: `The database of SERVICE_CLUSTER_URL ${fault}` }
    const dataDir = settings.directoryOf?.(facts.id)
    const losses =
      dataDir === undefined ? [] : await findLosses(dataDir, { session, statements, shards: facts.shards })
    if (losses.length > 0) return { ok: false, because: 'unfit', detail: losses.join('\n') }
    return { ok: true, facts, warnings }
  } catch (error) {
    return useless(error)
  } finally {
    session.drop()
  }
}

/** The cluster, if its tables are as they were created. @throws UnfitServer if they are not */
async function factsOf(session: Session, key: Uint8Array): Promise<ClusterFacts | undefined> {
  const { missing, wrong } = await examineTables(session, clusterTables)
  let facts: ClusterFacts | undefined
  try {
    facts = await readFacts(session, statements, key)
  } catch (error) {
    if (wrong.length === 0 || (error instanceof OtherVersion && !error.isUnknown)) throw error
  }
  // Without a cluster, tables may be missing.
  const faults = facts === undefined ? wrong : [...missing, ...wrong]
  if (faults.length > 0) throw new UnfitServer(faults.join('; '))
  return facts
}

function faultOf(facts: ClusterFacts | undefined): string | undefined {
  if (facts === undefined) return 'holds no cluster: create one with strandfast cluster init or cluster push'
  return facts.ready
    ? undefined
    : 'holds an incomplete cluster: a push was interrupted or is still running; run strandfast cluster push again'
}

/** The privileges that a node needs and its role lacks. */
async function lackOfRights(session: Session): Promise<string | undefined> {
  const rows: unknown = await session.rows(statements.missingPrivileges)
  if (!areRights(rows)) throw new Error('Malformed privilege row')
  const missing = rows.map(({ name, privilege }) => `${privilege} on ${name}`)
  return missing.length === 0
    ? undefined
    : `does not grant the role ${missing.join(', ')}: grant these privileges`
}

const areRights = listOf(fields({ name: isText, privilege: isText }))

/** In production, a database that may lose acknowledged writes has to be allowed explicitly. */
function lackOf({ replicated }: ServerFacts, settings: DatabaseSettings): string | undefined {
  if (replicated || settings.unreplicated || settings.environment !== 'production') return undefined
  return (
    'it does not wait for a standby at commit (synchronous_standby_names is empty), so acknowledged writes are lost with its disk: ' +
    'set up a synchronous standby, or set SERVICE_CLUSTER_UNREPLICATED=true'
  )
}

function warningsOf({ replicated }: ServerFacts): string[] {
  if (replicated) return []
  return [
    'the cluster’s database does not wait for a standby at commit (synchronous_standby_names is empty): acknowledged ' +
      'writes are lost with its disk',
  ]
}

function useless(error: unknown): { ok: false; because: 'away' | 'unfit'; detail: string } {
  const detail = `The database of the cluster cannot be used: ${describeDatabaseError(error)}`
  return { ok: false, because: isUnfit(error) ? 'unfit' : 'away', detail }
}
