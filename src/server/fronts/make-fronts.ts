import type { Logger } from '../../base/log.js'
import type { DataDirectory } from '../../data/directory.js'
import type { Shards } from '../../dispatch/links/shards.js'
import { unsharedBecause } from '../../front/http/server.js'
import {
  boundsMemory,
  ownBounds,
  sharedBounds,
  type Bounds,
  type BoundsMemory,
} from '../../front/limits/bounds.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { Config } from '../../settings/config.js'
import type { AuthParts, AuthServices } from '../auth.js'
import { Fronts } from './fronts.js'
import type { Parts } from '../parts.js'
import { boundSettings } from '../requests.js'
import type { Standing } from '../state.js'

/** The settings with the number of fronts in force: one where several threads cannot share a port. */
export async function withFronts(config: Config, log: Logger): Promise<Config> {
  if (config.fronts === 1) return config
  const because = await unsharedBecause(config.httpEngine)
  if (because === undefined) return config
  log.warn({ because }, 'one front serves instead of several')
  return { ...config, fronts: 1 }
}

/** What bounds all fronts together, and the memory of it where there are several. */
export function boundsOf(
  config: Config,
  connectionsMax: number,
): { bounds: Bounds; memory: BoundsMemory | undefined } {
  const settings = boundSettings(config, connectionsMax)
  if (config.fronts === 1) return { bounds: ownBounds(settings), memory: undefined }
  const memory = boundsMemory(settings)
  return { bounds: sharedBounds(settings, memory), memory }
}

interface Surroundings {
  directory: DataDirectory
  parts: Parts
  standing: Standing
  /** Absent for a server of its own. */
  lease: LeaseMemory | undefined
  /** Absent while the auth add-on is off. */
  auth: AuthServices | undefined
  connectionsMax: number
  memory: BoundsMemory
  /** Ends the process. */
  end(): void
  log: Logger
}

/** The fronts beside the main thread. */
export function frontsOf(config: Config, around: Surroundings): Fronts {
  const { directory, parts, standing, lease, auth, connectionsMax, memory, end, log } = around
  const { masterSeed, tokenEra, rootKeyDigest, shards } = directory
  return new Fronts({
    config,
    start: {
      config,
      masterSeed,
      tokenEra,
      rootKeyDigest,
      shards,
      connectionsMax,
      stageFolder: parts.stageFolder,
      hasServerLog: parts.serverLog !== undefined,
      auth: auth === undefined ? undefined : { license: auth.license, mailOn: auth.mailOn },
      standing: standing.memory,
      lease: lease?.memory,
      bounds: memory,
    },
    log,
    end,
  })
}

/** Has the main thread learn what has ended, so that no revoked token is accepted. */
export async function learnAll(shards: Shards, auth: AuthParts | undefined): Promise<void> {
  if (auth === undefined) return
  for (let shard = 0; shard < shards.count; shard++)
    await auth.learn((command) => shards.askOne(shard, command))
}
