import { randomBytes } from 'node:crypto'
import { systemClock } from '../base/clock.js'
import { pooledRandom } from '../base/random.js'
import { rowKeyOf } from '../data/row-key.js'
import { fingerprintOf } from '../data/seed-fingerprint.js'
import { makeCluster } from '../cluster/database/make.js'
import { describeTrouble } from '../cluster/database/trouble.js'
import { shardsMax } from '../settings/shards.js'
import { firstSegment } from '../../workers/store/replica/cluster-segment.js'
import { clusterSettingsOf, misused, reach, tell } from './cluster-settings.js'
import { exitCodes } from './exit-codes.js'
import { readOptions } from './read-options.js'

/**
 * Makes an empty cluster (docs/CLUSTER.md).
 * @returns the exit code: 0 made; 1 the database holds one, or failed; 75 it cannot be reached; 78 wrong usage or settings, or
 * a database that would lose what it acknowledges
 */
export async function clusterInitCommand(args: string[]): Promise<number> {
  const options = readOptions(args, { shards: { type: 'string' } })
  if (!options.ok) return misused(options.fault)
  const shards = Number(/^\d{1,2}$/.exec(options.values.shards ?? '')?.[0] ?? 0)
  if (shards < 1 || shards > shardsMax)
    return misused(`Expected --shards to be an integer from 1 to ${shardsMax}`)
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
