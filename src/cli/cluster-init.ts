import { randomBytes } from 'node:crypto'
import { systemClock } from '../base/clock.js'
import { pooledRandom } from '../base/random.js'
import { rowKeyOf, fingerprintOf } from '../data/derived-keys.js'
import { createCluster } from '../cluster/database/create.js'
import { describeDatabaseError, UnfitServer } from '../cluster/database/database-errors.js'
import { firstSegment } from '../../workers/store/replica/cluster-segment.js'
import { clusterSettingsOf, clusterUsage, connectToDatabase, refuse } from './cluster-settings.js'
import { command, exitCodes } from './command.js'
import { parseShardCount } from './reshard.js'

/**
 * Creates an empty cluster (docs/CLUSTER.md).
 * @returns the exit code: 0 created; 1 the database holds a cluster already, or failed; 75 the database
 * cannot be reached; 78 wrong usage or settings, or a database that would lose acknowledged commits
 */
export const clusterInitCommand = command({
  usage: clusterUsage,
  options: { shards: { type: 'string' } },
  read({ shards: text = '' }) {
    const shards = parseShardCount(text)
    return typeof shards === 'string' ? shards : { shards }
  },
  run: initCluster,
})

async function initCluster({ shards }: { shards: number }): Promise<number> {
  const settings = clusterSettingsOf()
  if (!settings.ok) return settings.exitCode
  const { config, masterSeed } = settings
  const session = await connectToDatabase(config)
  if (typeof session === 'number') return session
  const id = randomBytes(16).toString('hex')
  const cluster = {
    id,
    shards,
    layout: 0,
    seedFingerprint: fingerprintOf(masterSeed),
    createdAtMs: systemClock(),
    tokenEra: 0,
    ready: true,
  }
  const secret = { cluster: id, masterSeed, random: pooledRandom() }
  const first = Array.from({ length: shards }, (_none, shard) => firstSegment(shard, secret))
  try {
    await createCluster(session, { cluster, key: rowKeyOf(masterSeed) }, first)
    await session.close()
  } catch (error) {
    session.drop()
    const exitCode = error instanceof UnfitServer ? exitCodes.configuration : exitCodes.foundWrong
    return refuse(`The cluster was not created: ${describeDatabaseError(error)}`, exitCode)
  }
  process.stdout.write(
    `Created the cluster ${id} with ${shards} shards; a server with the same settings joins it as a node\n`,
  )
  return exitCodes.fine
}
