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
Moves the data directory to N shards, 1 to ${shardsMax}. The server must be stopped. Strands, hashes and signatures stay as
they are. Needs free space for a second copy of the data; cut off at any moment, the directory is as before or moved.
`

/** Records after which the clock is looked at. */
const TICK_RECORDS = 256

const MEBIBYTE = 1_048_576

/**
 * Moves a data directory to another number of shards (docs/adr/0021-resharding.md).
 * @returns the exit code: 0 moved, or nothing to do; 1 the data is damaged or there is no room, and nothing has changed;
 * 78 wrong usage or settings, or a data directory that is in use
 */
export const reshardCommand = command({
  usage: USAGE,
  options: { shards: { type: 'string' }, 'data-dir': { type: 'string' } },
  read({ shards: text = '', 'data-dir': dataDir }) {
    const shards = shardsIn(text)
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

/** The number that --shards was given; a text where it is none. */
export function shardsIn(text: string): number | string {
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
    tell(
      `The data directory ${path} is that of a node of the cluster ${format.cluster}, which has a fixed number of shards: make ` +
        'a directory of it by strandfast cluster pull, reshard that one, and push it into an empty database',
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
    tell(
      `Expected ${mebibytes(needed)} MiB of free space in ${path} for a second copy, got ${mebibytes(free)} MiB`,
    )
    return exitCodes.foundWrong
  }
  const { reshard, strayUsers } = await import('../../workers/reshard/reshard.js')
  const from = Array.from({ length: format.shards }, (_none, shard) => shardFolder(path, shard))
  if (await strayUsers({ from, rootAgent: config.agentId })) {
    tell(
      `The directory holds users that belong to another default agent than SERVICE_AGENT_ID=${config.agentId}: set it ` +
        'to the one that the server is run with',
    )
    return exitCodes.configuration
  }
  tell(
    `moving from ${format.shards} to ${shards} shards; ${mebibytes(needed)} MiB of ${mebibytes(free)} MiB may be used`,
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
    tell(`Not moved, and nothing has changed: ${describe(error)}`)
    return exitCodes.foundWrong
  }
  switchOver(path, format, shards)
  process.stdout.write(
    `Moved ${moved.agents} agents with ${moved.records} records to ${shards} shards, each record checked\n`,
  )
  if (config.shards !== undefined && config.shards !== shards) {
    tell(`SERVICE_SHARDS is ${config.shards}: unset it, or set it to ${shards}, before the next start`)
  }
  return exitCodes.fine
}

/**
 * Bytes that a second copy may take: trees that are filled out of order are less full than those that were appended to.
 */
function bytesNeeded(bytes: number, shards: number): number {
  return Math.ceil(bytes * limits.reshardSpaceFactor) + shards * MEBIBYTE
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / MEBIBYTE)
}

/** Shows how far a reshard is; it gives timers no turn. */
function reshardProgress(): { onProgress(told: ReshardProgress): void; end(): void } {
  const progress = startProgress()
  let last: ReshardProgress | undefined
  return {
    onProgress(told) {
      const isNext = told.step !== last?.step
      last = told
      const state = () => ({ done: last?.records ?? 0, total: last?.total })
      if (isNext) progress.show({ doing: told.step, unit: 'records', state })
      if (told.records % TICK_RECORDS === 0) progress.tick()
    },
    end: () => progress.end(),
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}

function tell(line: string): void {
  process.stderr.write(`${printable(line)}\n`)
}
