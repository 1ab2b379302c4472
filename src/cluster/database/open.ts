import { fields, isText, listOf } from '../../base/shape.js'
import { readFacts, type ClusterFacts } from './facts.js'
import { lossesIn } from './loss.js'
import { examineSessions, openLasting, type ServerFacts } from './server-check.js'
import type { Session } from './session.js'
import { clusterTables, statementsOf } from './statements.js'
import { describeTrouble, isUnfit, UnfitServer } from './trouble.js'

/** What an opening of a cluster goes by. */
export interface OpeningSettings {
  /** Addresses of its database's servers. */
  urls: readonly string[]
  /** Whether one without a synchronous standby will do. */
  unreplicated: boolean
  /** SERVICE_ENV. */
  environment: 'development' | 'production'
  /** The data directory where it is that of a node of a cluster, which is named by its id. */
  directoryOf?(id: string): string | undefined
}

/** A database that was reached; sentences without a full stop. */
export type Reached =
  | { ok: true; session: Session; server: ServerFacts; warnings: string[] }
  | { ok: false; detail: string; because: 'away' | 'unfit' }

/** A cluster that can be served from. */
export type ClusterOpening =
  | { ok: true; facts: ClusterFacts; warnings: string[] }
  | { ok: false; detail: string; because: 'away' | 'unfit' }

const statements = statementsOf(clusterTables)

/** Connects to the database of a cluster, and looks whether it keeps what it acknowledges. */
export async function reachDatabase(settings: OpeningSettings): Promise<Reached> {
  try {
    const { session, server } = await openLasting(settings.urls)
    const lack = lackOf(server, settings)
    if (lack === undefined) return { ok: true, session, server, warnings: warningsOf(server) }
    session.drop()
    throw new UnfitServer(lack)
  } catch (error) {
    return useless(error)
  }
}

/** Reads what the cluster is. @param settings with the key of the MACs of its rows */
export async function openCluster(
  settings: OpeningSettings & { rowKey: Uint8Array },
): Promise<ClusterOpening> {
  const reached = await reachDatabase(settings)
  if (!reached.ok) return reached
  const { session, warnings } = reached
  try {
    await examineSessions(settings.urls)
    const facts = await readFacts(session, statements, settings.rowKey)
    const fault = faultOf(facts) ?? (await lackOfRights(session))
    if (facts === undefined || fault !== undefined)
      return { ok: false, because: 'unfit', detail: `The database of SERVICE_CLUSTER_URL ${fault}` }
    const dataDir = settings.directoryOf?.(facts.id)
    const losses =
      dataDir === undefined ? [] : await lossesIn(dataDir, { session, statements, shards: facts.shards })
    if (losses.length > 0) return { ok: false, because: 'unfit', detail: losses.join('\n') }
    return { ok: true, facts, warnings }
  } catch (error) {
    return useless(error)
  } finally {
    session.drop()
  }
}

function faultOf(facts: ClusterFacts | undefined): string | undefined {
  if (facts === undefined) return 'holds no cluster: make one by strandfast cluster init, or cluster push'
  return facts.ready
    ? undefined
    : 'holds a cluster that is not whole: a push was cut off, or is under way; run strandfast cluster push again'
}

/** What a node needs and its role may not do. */
async function lackOfRights(session: Session): Promise<string | undefined> {
  const rows: unknown = await session.rows(statements.rights)
  if (!areRights(rows)) throw new Error('Expected the server to tell the rights of the role')
  const missing = rows.map(({ name, privilege }) => `${privilege} on ${name}`)
  return missing.length === 0 ? undefined : `gives the role no right to ${missing.join(', ')}: grant it`
}

const areRights = listOf(fields({ name: isText, privilege: isText }))

/** In production a database that may lose what it has acknowledged has to be asked for. */
function lackOf({ replicated }: ServerFacts, settings: OpeningSettings): string | undefined {
  if (replicated || settings.unreplicated || settings.environment !== 'production') return undefined
  return (
    'no commit of it waits for a standby (synchronous_standby_names is empty), so what it answered is lost with its disk: ' +
    'set up a synchronous standby, or set SERVICE_CLUSTER_UNREPLICATED=true'
  )
}

function warningsOf({ replicated }: ServerFacts): string[] {
  if (replicated) return []
  return [
    'no commit of the cluster’s database waits for a standby (synchronous_standby_names is empty): what it answered is ' +
      'lost with its disk',
  ]
}

function useless(error: unknown): { ok: false; because: 'away' | 'unfit'; detail: string } {
  const detail = `The database of the cluster cannot be used: ${describeTrouble(error)}`
  return { ok: false, because: isUnfit(error) ? 'unfit' : 'away', detail }
}
