import { randomBytes } from 'node:crypto'
import { systemClock } from '../base/clock.js'
import { pooledRandom } from '../base/random.js'
import { rowKeyOf, fingerprintOf } from '../data/derived-keys.js'
import { makeCluster } from '../cluster/database/make.js'
import { describeTrouble } from '../cluster/database/trouble.js'
import { firstSegment } from '../../workers/store/replica/cluster-segment.js'
import { clusterSettingsOf, clusterUsage, reach, tell } from './cluster-settings.js'
import { command, exitCodes } from './command.js'
import { shardsIn } from './reshard.js'

/**
 * Makes an empty cluster (docs/CLUSTER.md).
 * @returns the exit code: 0 made; 1 the database holds one, or failed; 75 it cannot be reached; 78 wrong usage or settings, or
 * a database that would lose what it acknowledges
 */
export const clusterInitCommand = command({
  usage: clusterUsage,
  options: { shards: { type: 'string' } },
  read({ shards: text = '' }) {
    const shards = shardsIn(text)
    return typeof shards === 'string' ? shards : { shards }
  },
  run: initCluster,
})

async function initCluster({ shards }: { shards: number }): Promise<number> {
  const settings = clusterSettingsOf()
  if (!settings.ok) return settings.exitCode
  const { config, masterSeed } = settings
  const session = await reach(config)
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
    await makeCluster(session, { cluster, key: rowKeyOf(masterSeed) }, first)
    await session.close()
  } catch (error) {
    session.drop()
    tell(`No cluster was made in the database: ${describeTrouble(error)}`)
    return exitCodes.foundWrong
  }
  process.stdout.write(
    `Made the cluster ${id} of ${shards} shards; a server with the same settings is its node\n`,
  )
  return exitCodes.fine
}
