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
import {
  readClusterFacts,
  finishCluster,
  createCluster,
  removeUnfinished,
} from '../cluster/database/create.js'
import { SegmentRegister } from '../cluster/database/register.js'
import type { Session } from '../cluster/database/session.js'
import { clusterTables, statementsOf } from '../cluster/database/statements.js'
import { describeDatabaseError, isForeign, UnfitServer } from '../cluster/database/database-errors.js'
import { type ClusterSecret, firstSegment } from '../../workers/store/replica/cluster-segment.js'
import type { LogPosition } from '../../workers/store/log/file-log.js'
import { adopt, PushedStore } from '../../workers/store/replica/pushed-store.js'
import {
  clusterUsage,
  onIdleDirectory,
  connectToDatabase,
  refuse,
  type SubcommandSettings,
} from './cluster-settings.js'
import { command, exitCodes } from './command.js'
import { startProgress } from './progress.js'

interface PushTarget {
  session: Session
  urls: readonly string[]
}

/**
 * Turns the data directory of a stopped server into a cluster; the directory becomes the one of its first
 * node (docs/CLUSTER.md). If interrupted, run it again: no server starts on the cluster before the push is
 * complete.
 * @returns the exit code: 0 done; 1 the database holds a cluster, or failed; 75 the database cannot be
 * reached; 78 wrong usage or settings, or a directory that cannot be used
 */
export const clusterPushCommand = command({
  usage: clusterUsage,
  options: { 'data-dir': { type: 'string' } },
  read: ({ 'data-dir': dataDir }) => ({ dataDir }),
  run: ({ dataDir }) => onIdleDirectory(dataDir, pushDirectory),
})

async function pushDirectory(directory: IdleDirectory, settings: SubcommandSettings): Promise<number> {
  const { path, format } = directory
  if (!isSeedOf(settings.masterSeed, format))
    return refuse('The master seed is not the one of this data directory')
  const session = await connectToDatabase(settings.config)
  if (typeof session === 'number') return session
  try {
    const found = await readClusterFacts(session, rowKeyOf(settings.masterSeed))
    const fault = faultOf(found, directory)
    if (fault !== undefined) {
      const exitCode = refuse(fault, exitCodes.foundWrong)
      await session.close()
      return exitCode
    }
    if (found !== undefined) await removeUnfinished(session, found.id, rowKeyOf(settings.masterSeed))
    const id = found?.id ?? randomBytes(16).toString('hex')
    const bytes = await push(session, { id, directory, settings })
    await session.close()
    process.stdout.write(
      `Created the cluster ${id} from ${path}: ${bytes} bytes of records in ${format.shards} shards. The directory now belongs to ` +
        'its first node: start that node with SERVICE_CLUSTER_URL\n',
    )
    return exitCodes.fine
  } catch (error) {
    session.drop()
    if (isForeign(error) || error instanceof UnfitServer)
      return refuse(`The database cannot be used: ${error.message}`)
    return refuse(`The push failed, run it again: ${describeDatabaseError(error)}`, exitCodes.foundWrong)
  }
}

/** @returns why the directory cannot be pushed into the database; undefined if it can */
function faultOf(
  found: ClusterFacts | undefined,
  { path, format: { cluster, ...format } }: IdleDirectory,
): string | undefined {
  if (found === undefined)
    return cluster === undefined
      ? undefined
      : `The data directory belongs to a node of the cluster ${cluster} already: expected a standalone directory`
  if (cluster === found.id && seenRevision(path) > found.revision)
    return `The cluster ${found.id} was complete when a node started on this data directory: the database was set back to an earlier state`
  if (found.ready) return 'The database holds a cluster already: push into an empty database'
  const isOurs =
    found.createdAtMs === format.createdAtMs && found.seedFingerprint === format.masterSeedFingerprint
  if (isOurs && (cluster ?? found.id) === found.id) return undefined
  return 'The database holds an incomplete cluster of another directory: push that directory again, or drop the tables'
}

/** @returns how many bytes of records were written */
async function push(
  session: Session,
  { id, directory, settings }: { id: string; directory: IdleDirectory; settings: SubcommandSettings },
): Promise<number> {
  const { path, format } = directory
  const { shards, layout, createdAtMs, tokenEra, masterSeedFingerprint: seedFingerprint } = format
  const secret = { cluster: id, masterSeed: settings.masterSeed, random: pooledRandom() }
  const numbers = Array.from({ length: shards }, (_none, shard) => shard)
  const first = numbers.map((shard) => firstSegment(shard, secret))
  const facts = { id, shards, layout, seedFingerprint, createdAtMs, tokenEra, ready: false }
  const key = rowKeyOf(settings.masterSeed)
  await createCluster(session, { cluster: facts, key }, first)
  const { urls } = settings.cluster
  const { bytes, positions } = await pushStores({ path, shards, secret }, { session, urls })
  writeFormat(path, { ...format, cluster: id })
  for (const [shard, position] of positions.entries()) await adopt(shardFolder(path, shard), position)
  await finishCluster(session, id, key)
  return bytes
}

/**
 * Writes the stores of a locked directory into logs that hold only their first segment.
 * @returns the bytes of records written, and the end of each log
 */
async function pushStores(
  { path, shards, secret }: { path: string; shards: number; secret: ClusterSecret },
  to: PushTarget,
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
 * Writes a store into the log of its shard, which holds only the first segment.
 * @param onPushed called with the bytes of each segment
 * @throws Error if the database did not accept a segment, or another node writes to the log
 */
async function pushStore(
  store: PushedStore,
  { session, urls }: PushTarget,
  onPushed: (bytes: number) => void,
): Promise<void> {
  const { shard } = store
  const statements = statementsOf(clusterTables)
  const register = new SegmentRegister({ urls, statements, nowMs: steadyClock, chance: Math.random })
  try {
    for (const { before, ...segment } of store.segments()) {
      const outcome = await register.append(before, { shard, ...segment })
      if (outcome.kind === 'unknown') throw new Error(outcome.reason)
      if (outcome.kind !== 'durable') throw new Error(`another node writes to the log of shard ${shard}`)
      onPushed(segment.parts.reduce((sum, { blocks }) => sum + blocks.length, 0))
    }
  } finally {
    await register.close()
  }
  const checkpoints = new CheckpointTable(session, statements, shard)
  for (const { segment, part, state } of store.parts(systemClock()))
    await checkpoints.put(segment, part, state)
}
