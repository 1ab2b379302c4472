import type { Session } from '../cluster/database/session.js'
import type { ClusterConfig } from '../settings/cluster.js'
import { type Config, describeFaults, readProcessConfig } from '../settings/config.js'
import { exitCodes, fail, showUsage } from './command.js'
import { printable } from './printable.js'
import { type IdleDirectory, openIdleDirectory } from '../data/directory.js'
import { rowKeyOf } from '../data/derived-keys.js'
import { type ClusterOrigin, isDirectoryOf } from '../data/cluster-origin.js'

/** What a subcommand works with. */
export interface UsableSettings {
  ok: true
  config: Config
  cluster: ClusterConfig
  masterSeed: Buffer
}

/** The same, or the exit code that it ends with at once. */
export type ClusterSettings = UsableSettings | { ok: false; exitCode: number }

/** A setting that a server needs, and a subcommand does not. */
const rootKey = 'SERVICE_ROOT_API_KEY'

/** Reads the settings of a subcommand. @param given settings by name that take precedence over the environment */
export function clusterSettingsOf(given: Record<string, string> = {}): ClusterSettings {
  const reading = readProcessConfig(given, [rootKey])
  if (!reading.ok) {
    process.stderr.write(describeFaults(reading.faults))
    return { ok: false, exitCode: exitCodes.configuration }
  }
  const { config } = reading
  const { cluster, masterSeed } = config
  // A cluster’s settings have a master seed.
  if (cluster !== undefined && masterSeed !== undefined) return { ok: true, config, cluster, masterSeed }
  tell('SERVICE_CLUSTER_URL is not set: it names the database of the cluster')
  return { ok: false, exitCode: exitCodes.configuration }
}

/** Does work on the data directory of a stopped server. @returns the exit code */
export async function onIdleDirectory(
  dataDir: string | undefined,
  work: (directory: IdleDirectory, settings: UsableSettings) => Promise<number>,
): Promise<number> {
  const settings = clusterSettingsOf(dataDir === undefined ? {} : { SERVICE_DATA_DIR: dataDir })
  if (!settings.ok) return settings.exitCode
  const opening = openIdleDirectory(settings.config.dataDir)
  if (!opening.ok) return fail(printable(opening.detail), exitCodes.configuration)
  try {
    return await work(opening.directory, settings)
  } finally {
    opening.directory.close()
  }
}

/** Connects to the database. @returns the exit code where that cannot be used, which is told */
export async function reach({ cluster, environment }: Config): Promise<Session | number> {
  if (cluster === undefined) return exitCodes.configuration
  const { reachDatabase } = await import('../cluster/database/open.js')
  const reached = await reachDatabase({ ...cluster, environment })
  if (!reached.ok) {
    tell(reached.detail)
    return reached.because === 'away' ? exitCodes.tryAgain : exitCodes.configuration
  }
  for (const warning of reached.warnings) tell(`warning: ${warning}`)
  return reached.session
}

/** By which faults of arguments lead to the usage of all subcommands. */
export const clusterUsage = 'Usage: strandfast cluster'

/** Ends a subcommand that was called wrongly. */
export function misused(fault: string): number {
  return showUsage(clusterUsage, { help: false, fault })
}

export function tell(line: string): void {
  process.stderr.write(`${printable(line)}\n`)
}

/** What a server that starts learns of its cluster. */
type ClusterStart =
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
