import type { ReshardProgress } from '../../workers/reshard/reshard.js'
import { limits } from '../base/limits/limits.js'
import type { Config } from '../settings/config.js'
import { shardsMax } from '../settings/threads.js'
import { freeBytes, type IdleDirectory, openIdleDirectory } from '../data/directory.js'
import { beginBuild, dropBuild, shardBytes, shardFolder, switchOver } from '../data/shard-folders.js'
import { command, fail, exitCodes } from './command.js'
import { printable } from './printable.js'
import { startProgress } from './progress.js'
import { configOf } from './read-settings.js'

const USAGE = `Usage: strandfast reshard --shards N [--data-dir DIR]
Changes the number of shards of the data directory to N, 1 to ${shardsMax}. The server must be stopped. Strands, hashes and
signatures do not change. Needs free space for a second copy of the data. An interrupted move leaves the directory as it was.
`

/** The progress line is updated at most once per this many records. */
const TICK_RECORDS = 256

const MEBIBYTE = 1_048_576

/**
 * Changes the number of shards of a data directory (docs/adr/0021-resharding.md).
 * @returns the exit code: 0 moved, or nothing to do; 1 the data is damaged or free space is missing, and
 * nothing has changed; 78 wrong usage or settings, or a data directory that is in use
 */
export const reshardCommand = command({
  usage: USAGE,
  options: { shards: { type: 'string' }, 'data-dir': { type: 'string' } },
  read({ shards: text = '', 'data-dir': dataDir }) {
    const shards = parseShardCount(text)
    return typeof shards === 'string' ? shards : { shards, dataDir }
  },
  async run({ shards, dataDir }) {
    const config = configOf(dataDir)
    if (typeof config === 'number') return config
    const opening = openIdleDirectory(config.dataDir)
    if (!opening.ok) return fail(printable(opening.detail), exitCodes.configuration)
    try {
      return await reshardDirectory(opening.directory, shards, config)
    } finally {
      opening.directory.close()
    }
  },
})

/** Parses the value of --shards. @returns a text that says what is wrong if it is not a valid number */
export function parseShardCount(text: string): number | string {
  const shards = /^\d{1,2}$/.test(text) ? Number(text) : 0
  return shards >= 1 && shards <= shardsMax
    ? shards
    : `Expected --shards to be an integer from 1 to ${shardsMax}`
}

async function reshardDirectory(
  { path, format }: IdleDirectory,
  shards: number,
  config: Config,
): Promise<number> {
  if (format.cluster !== undefined) {
    logLine(
      `The data directory ${path} belongs to a node of the cluster ${format.cluster}, whose number of shards is fixed: copy the ` +
        'cluster with strandfast cluster pull, reshard the copy, and push it into an empty database',
    )
    return exitCodes.configuration
  }
  if (format.shards === shards) {
    process.stdout.write(`The data directory ${path} has ${shards} shards already\n`)
    return exitCodes.fine
  }
  const needed = bytesNeeded(shardBytes(path, format.shards), shards)
  const free = freeBytes(path)
  if (free < needed) {
    logLine(
      `Not enough free space in ${path} for a second copy: ${mebibytes(needed)} MiB needed, ${mebibytes(free)} MiB free`,
    )
    return exitCodes.foundWrong
  }
  const { reshard, hasStrayUsers: strayUsers } = await import('../../workers/reshard/reshard.js')
  const from = Array.from({ length: format.shards }, (_none, shard) => shardFolder(path, shard))
  if (await strayUsers({ from, rootAgent: config.agentId })) {
    logLine(
      `The directory holds users of another default agent than SERVICE_AGENT_ID=${config.agentId}: set it to the value ` +
        'with which the server runs',
    )
    return exitCodes.configuration
  }
  logLine(
    `moving from ${format.shards} to ${shards} shards, using up to ${mebibytes(needed)} of ${mebibytes(free)} MiB of free space`,
  )
  const build = beginBuild(path)
  const to = Array.from({ length: shards }, (_none, shard) => shardFolder(build, shard))
  const progress = reshardProgress()
  let moved: { agents: number; records: number }
  try {
    const { onProgress } = progress
    moved = await reshard({ from, to, rootAgent: config.agentId, onProgress })
    progress.end()
  } catch (error) {
    progress.end()
    dropBuild(path)
    logLine(`Not moved, and nothing has changed: ${describe(error)}`)
    return exitCodes.foundWrong
  }
  switchOver(path, format, shards)
  process.stdout.write(
    `Moved ${moved.agents} agents with ${moved.records} records to ${shards} shards and checked each record\n`,
  )
  if (config.shards !== undefined && config.shards !== shards) {
    logLine(`SERVICE_SHARDS is ${config.shards}: unset it or set it to ${shards} before the next start`)
  }
  return exitCodes.fine
}

/**
 * The maximum size of a second copy. B-trees that are filled out of order have less full pages than those
 * appended to.
 */
function bytesNeeded(bytes: number, shards: number): number {
  return Math.ceil(bytes * limits.reshardSpaceFactor) + shards * MEBIBYTE
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / MEBIBYTE)
}

/** Shows the progress of a reshard, which blocks the event loop, so timers do not run. */
function reshardProgress(): { onProgress(progress: ReshardProgress): void; end(): void } {
  const line = startProgress()
  let last: ReshardProgress | undefined
  return {
    onProgress(progress) {
      const isNewStep = progress.step !== last?.step
      last = progress
      const state = () => ({ done: last?.records ?? 0, total: last?.total })
      if (isNewStep) line.show({ doing: progress.step, unit: 'records', state })
      if (progress.records % TICK_RECORDS === 0) line.tick()
    },
    end: () => line.end(),
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}

function logLine(line: string): void {
  process.stderr.write(`${printable(line)}\n`)
}
