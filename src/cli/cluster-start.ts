import { rowKeyOf } from '../data/row-key.js'
import { type ClusterOrigin, isDirectoryOf } from '../data/cluster-origin.js'
import type { Config } from '../settings/config.js'
import { exitCodes } from './exit-codes.js'

/** What a server that starts learns of its cluster. */
export type ClusterStart =
  | { ok: true; origin: ClusterOrigin | undefined; warnings: string[] }
  | { ok: false; detail: string; exitCode: number }

/**
 * Looks at the cluster that the settings name, and whether it still has what the data directory knows of it; nothing where they name
 * none.
 */
export async function openCluster(config: Config): Promise<ClusterStart> {
  const { cluster, environment, dataDir, masterSeed } = config
  // A cluster’s settings have a master seed.
  if (cluster === undefined || masterSeed === undefined) return { ok: true, origin: undefined, warnings: [] }
  // Loaded where there is a cluster: the driver takes a while.
  const outbound = await import('../cluster/database/open.js')
  const directoryOf = (id: string) => (isDirectoryOf(dataDir, id) ? dataDir : undefined)
  const rowKey = rowKeyOf(masterSeed)
  const opening = await outbound.openCluster({ ...cluster, environment, rowKey, directoryOf })
  if (opening.ok) return { ok: true, origin: opening.facts, warnings: opening.warnings }
  const { detail, because } = opening
  return { ok: false, detail, exitCode: because === 'away' ? exitCodes.foundWrong : exitCodes.configuration }
}
