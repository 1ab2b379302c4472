import { randomBytes } from 'node:crypto'
import { steadyClock, systemClock } from '../base/clock.js'
import { pooledRandom } from '../base/random.js'
import { isSeedOf, type IdleDirectory } from '../data/directory.js'
import { seenRevision } from '../data/cluster-origin.js'
import { writeFormat } from '../data/format.js'
import { rowKeyOf } from '../data/derived-keys.js'
import { shardFolder } from '../data/shard-folders.js'
import { CheckpointTable } from '../cluster/database/checkpoints.js'
import type { ClusterFacts } from '../cluster/database/facts.js'
import { factsOf, finishCluster, makeCluster, removeUnfinished } from '../cluster/database/make.js'
import { SegmentRegister } from '../cluster/database/register.js'
import type { Session } from '../cluster/database/session.js'
import { type ClusterStatements, clusterTables, statementsOf } from '../cluster/database/statements.js'
import { describeTrouble, isOther } from '../cluster/database/trouble.js'
import { type ClusterSecret, firstSegment } from '../../workers/store/replica/cluster-segment.js'
import type { LogPosition } from '../../workers/store/log/file-log.js'
import { adopt, PushedStore } from '../../workers/store/replica/pushed-store.js'
import { clusterUsage, onIdleDirectory, reach, tell, type UsableSettings } from './cluster-settings.js'
import { command, exitCodes } from './command.js'
import { startProgress } from './progress.js'

/** Where stores are pushed to. */
interface PushedTo {
  session: Session
  urls: readonly string[]
  /** Those of the tables; of a cluster's when absent. */
  statements?: ClusterStatements
}

/**
 * Makes a cluster of a stopped data directory, and the directory that of its first node (docs/CLUSTER.md). Cut off at any
 * moment, it is done by being run again; until it is done no server starts on the cluster.
 * @returns the exit code: 0 done; 1 the database holds a cluster, or failed; 75 it cannot be reached; 78 wrong usage or
 * settings, or a directory that cannot be used
 */
export const clusterPushCommand = command({
  usage: clusterUsage,
  options: { 'data-dir': { type: 'string' } },
  read: ({ 'data-dir': dataDir }) => ({ dataDir }),
  run: ({ dataDir }) => onIdleDirectory(dataDir, pushDirectory),
})

async function pushDirectory(directory: IdleDirectory, settings: UsableSettings): Promise<number> {
  const { path, format } = directory
  if (!isSeedOf(settings.masterSeed, format)) {
    tell('The master seed given is not the one that the data directory was made with')
    return exitCodes.configuration
  }
  const session = await reach(settings.config)
  if (typeof session === 'number') return session
  try {
    const found = await factsOf(session, rowKeyOf(settings.masterSeed))
    const fault = faultOf(found, directory)
    if (fault !== undefined) {
      tell(fault)
      await session.close()
      return exitCodes.foundWrong
    }
    if (found !== undefined) await removeUnfinished(session, found.id, rowKeyOf(settings.masterSeed))
    const id = found?.id ?? randomBytes(16).toString('hex')
    const bytes = await push(session, { id, directory, settings })
    await session.close()
    process.stdout.write(
      `Made the cluster ${id} of ${path}: ${bytes} bytes of records in ${format.shards} shards; the directory is that of its first ` +
        'node, to be started with SERVICE_CLUSTER_URL\n',
    )
    return exitCodes.fine
  } catch (error) {
    session.drop()
    if (isOther(error)) {
      tell(`The database: ${error.message}`)
      return exitCodes.configuration
    }
    tell(`Not done, run it again: ${describeTrouble(error)}`)
    return exitCodes.foundWrong
  }
}

/** Why a directory cannot become the cluster of a database. */
function faultOf(
  found: ClusterFacts | undefined,
  { path, format: { cluster, ...format } }: IdleDirectory,
): string | undefined {
  if (found === undefined)
    return cluster === undefined
      ? undefined
      : `The data directory is that of a node of the cluster ${cluster} already: expected one of its own`
  if (cluster === found.id && seenRevision(path) > found.revision)
    return `The cluster ${found.id} was whole when a node started on the data directory: its row in the database went back to an earlier state`
  if (found.ready) return 'The database holds a cluster already: a directory can become a new one alone'
  const isOurs =
    found.createdAtMs === format.createdAtMs && found.seedFingerprint === format.masterSeedFingerprint
  if (isOurs && (cluster ?? found.id) === found.id) return undefined
  return 'The database holds a cluster that is not whole, of another directory: push that one again, or drop its tables'
}

/** @returns how many bytes of records were written */
async function push(
  session: Session,
  { id, directory, settings }: { id: string; directory: IdleDirectory; settings: UsableSettings },
): Promise<number> {
  const { path, format } = directory
  const { shards, layout, createdAtMs, tokenEra, masterSeedFingerprint: seedFingerprint } = format
  const secret = { cluster: id, masterSeed: settings.masterSeed, random: pooledRandom() }
  const numbers = Array.from({ length: shards }, (_none, shard) => shard)
  const first = numbers.map((shard) => firstSegment(shard, secret))
  const facts = { id, shards, layout, seedFingerprint, createdAtMs, tokenEra, ready: false }
  const key = rowKeyOf(settings.masterSeed)
  await makeCluster(session, { cluster: facts, key }, first)
  const { urls } = settings.cluster
  const { bytes, positions } = await pushStores({ path, shards, secret }, { session, urls })
  writeFormat(path, { ...format, hasLog: true, cluster: id })
  for (const [shard, position] of positions.entries()) await adopt(shardFolder(path, shard), position)
  await finishCluster(session, id, key)
  return bytes
}

/** Writes the stores of a directory that is locked into logs that have begun. @returns how many bytes of records, and where each ends */
export async function pushStores(
  { path, shards, secret }: { path: string; shards: number; secret: ClusterSecret },
  to: PushedTo,
): Promise<{ bytes: number; positions: LogPosition[] }> {
  let done = 0
  const progress = startProgress()
  progress.show({ doing: 'pushed', unit: 'bytes', state: () => ({ done }) })
  const positions: LogPosition[] = []
  try {
    for (let shard = 0; shard < shards; shard++) {
      const store = await PushedStore.open(shardFolder(path, shard), shard, secret)
      try {
        await pushStore(store, to, (bytes) => void (done += bytes))
        positions.push(store.position)
      } finally {
        await store.close()
      }
    }
  } finally {
    progress.end()
  }
  return { bytes: done, positions }
}

/**
 * Writes a store into the log of its shard, of which there is the first segment alone.
 * @param pushed called with the bytes of each segment
 * @throws Error when the database did not take it, or another node writes there
 */
async function pushStore(
  store: PushedStore,
  { session, urls, statements = statementsOf(clusterTables) }: PushedTo,
  pushed: (bytes: number) => void,
): Promise<void> {
  const { shard } = store
  const register = new SegmentRegister({ urls, statements, nowMs: steadyClock, chance: Math.random })
  try {
    for (const { before, ...segment } of store.segments()) {
      const outcome = await register.append(before, { shard, ...segment })
      if (outcome.kind === 'unknown') throw new Error(outcome.reason)
      if (outcome.kind !== 'durable') throw new Error('another node writes to it')
      pushed(segment.parts.reduce((sum, { blocks }) => sum + blocks.length, 0))
    }
  } finally {
    await register.close()
  }
  const checkpoints = new CheckpointTable(session, statements, shard)
  for (const { segment, part, state } of store.parts(systemClock()))
    await checkpoints.put(segment, part, state)
}
