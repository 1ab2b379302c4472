import type { Session } from '../cluster/database/session.js'
import type { ClusterConfig } from '../settings/cluster.js'
import { type Config, describeFaults, readProcessConfig } from '../settings/config.js'
import { exitCodes, showUsage } from './command.js'
import { printable } from './printable.js'
import { type IdleDirectory, openIdleDirectory } from '../data/directory.js'
import { rowKeyOf } from '../data/derived-keys.js'
import { type ClusterOrigin, isDirectoryOf } from '../data/cluster-origin.js'

export interface SubcommandSettings {
  ok: true
  config: Config
  cluster: ClusterConfig
  masterSeed: Buffer
}

/** The settings of a subcommand, or the exit code with which it ends if they are invalid. */
type ClusterSettings = SubcommandSettings | { ok: false; exitCode: number }

/** A setting that servers require and subcommands do not. */
const rootKey = 'SERVICE_ROOT_API_KEY'

/**
 * Reads the settings of a subcommand and prints what is wrong.
 * @param given settings by name, which take precedence over the environment
 */
export function clusterSettingsOf(given: Record<string, string> = {}): ClusterSettings {
  const reading = readProcessConfig(given, [rootKey])
  if (!reading.ok) {
    process.stderr.write(describeFaults(reading.faults))
    return { ok: false, exitCode: exitCodes.configuration }
  }
  const { config } = reading
  const { cluster, masterSeed } = config
  // With SERVICE_CLUSTER_URL, a master seed is mandatory.
  if (cluster !== undefined && masterSeed !== undefined) return { ok: true, config, cluster, masterSeed }
  const exitCode = refuse('SERVICE_CLUSTER_URL is not set: set it to the database of the cluster')
  return { ok: false, exitCode }
}

/** Locks the data directory of a stopped server and runs `work` on it. @returns the exit code */
export async function onIdleDirectory(
  dataDir: string | undefined,
  work: (directory: IdleDirectory, settings: SubcommandSettings) => Promise<number>,
): Promise<number> {
  const settings = clusterSettingsOf(dataDir === undefined ? {} : { SERVICE_DATA_DIR: dataDir })
  if (!settings.ok) return settings.exitCode
  const opening = openIdleDirectory(settings.config.dataDir)
  if (!opening.ok) return refuse(opening.detail)
  try {
    return await work(opening.directory, settings)
  } finally {
    opening.directory.close()
  }
}

/**
 * Connects to the database.
 * @param purpose to `read`, an unfit database suffices
 * @returns the session, or an exit code if the database cannot be used; the reason is printed
 */
export async function connectToDatabase(
  { cluster, environment }: Config,
  purpose: 'read' | 'write' = 'write',
): Promise<Session | number> {
  if (cluster === undefined) return exitCodes.configuration
  const { connectDatabase, connectToRead } = await import('../cluster/database/open.js')
  const reached = await (purpose === 'read'
    ? connectToRead(cluster.urls)
    : connectDatabase({ ...cluster, environment }))
  if (!reached.ok)
    return refuse(reached.detail, reached.because === 'away' ? exitCodes.tryAgain : exitCodes.configuration)
  for (const warning of reached.warnings) logLine(`warning: ${warning}`)
  return reached.session
}

/**
 * `showUsage` takes the command from this line, so a wrong argument refers to `strandfast cluster --help`.
 */
export const clusterUsage = 'Usage: strandfast cluster'

/** Prints a fault of the arguments. @returns the exit code */
export function usageError(fault: string): number {
  return showUsage(clusterUsage, { help: false, fault })
}

/** Prints a line on standard error. */
export function logLine(line: string): void {
  process.stderr.write(`${printable(line)}\n`)
}

/** Prints why a subcommand ends. @returns the exit code */
export function refuse(detail: string, exitCode: number = exitCodes.configuration): number {
  logLine(detail)
  return exitCode
}

/** The cluster at the start of a server, or why the server cannot start. */
type ClusterStart =
  | { ok: true; origin: ClusterOrigin | undefined; warnings: string[] }
  | { ok: false; detail: string; exitCode: number }

/**
 * Reads the cluster of the settings, and checks that it still holds every segment that the data directory
 * knows was durable. Without SERVICE_CLUSTER_URL, `origin` is undefined.
 */
export async function readClusterOrigin(config: Config): Promise<ClusterStart> {
  const { cluster, environment, dataDir, masterSeed } = config
  // With SERVICE_CLUSTER_URL, a master seed is mandatory.
  if (cluster === undefined || masterSeed === undefined) return { ok: true, origin: undefined, warnings: [] }
  // The database driver takes a while to load, so it is loaded only for a cluster.
  const outbound = await import('../cluster/database/open.js')
  const directoryOf = (id: string) => (isDirectoryOf(dataDir, id) ? dataDir : undefined)
  const rowKey = rowKeyOf(masterSeed)
  const opening = await outbound.openCluster({ ...cluster, environment, rowKey, directoryOf })
  if (opening.ok) return { ok: true, origin: opening.facts, warnings: opening.warnings }
  const { detail, because } = opening
  return { ok: false, detail, exitCode: because === 'away' ? exitCodes.foundWrong : exitCodes.configuration }
}
