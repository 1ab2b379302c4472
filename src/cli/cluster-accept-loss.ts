import { systemClock } from '../base/clock.js'
import { noteAcceptedLoss } from '../data/accepted-losses.js'
import { type IdleDirectory, isSeedOf } from '../data/directory.js'
import {
  DamagedKnownEnd,
  knownEndPath,
  readKnownEnd,
  replaceKnownEnd,
} from '../cluster/database/known-end.js'
import { describeLoss, findLoss, type Loss } from '../cluster/database/loss.js'
import { rowKeyOf } from '../data/derived-keys.js'
import { readClusterFacts } from '../cluster/database/create.js'
import type { SegmentPosition } from '../cluster/database/register.js'
import type { Session } from '../cluster/database/session.js'
import { clusterTables, statementsOf } from '../cluster/database/statements.js'
import { describeDatabaseError } from '../cluster/database/database-errors.js'
import {
  clusterUsage,
  onIdleDirectory,
  connectToDatabase,
  refuse,
  type SubcommandSettings,
} from './cluster-settings.js'
import { command, exitCodes } from './command.js'

interface GivenLoss {
  shard: number
  from: number
}

/**
 * Makes a stopped node accept that the log of the cluster has lost segments that the node knows were durable
 * (docs/CLUSTER.md). The next start of the node records this on the audit strand, and sets aside a store that
 * is ahead of the log.
 * @returns the exit code: 0 accepted; 1 nothing is missing, or failed; 75 the database cannot be reached; 78
 * wrong usage, settings or directory, or `--from` is not the first missing segment
 */
export const clusterAcceptLossCommand = command({
  usage: clusterUsage,
  options: { shard: { type: 'string' }, from: { type: 'string' }, 'data-dir': { type: 'string' } },
  read({ shard, from, 'data-dir': dataDir }) {
    const loss = { shard: parseNumber(shard), from: parseNumber(from) }
    return Number.isNaN(loss.shard) || Number.isNaN(loss.from)
      ? 'Expected --shard N and --from SEGMENT, the first missing segment'
      : { loss, dataDir }
  },
  run: ({ loss, dataDir }) =>
    onIdleDirectory(dataDir, (directory, settings) => acceptIn(directory, settings, loss)),
})

async function acceptIn(
  directory: IdleDirectory,
  { config, cluster, masterSeed }: SubcommandSettings,
  given: GivenLoss,
): Promise<number> {
  const { path, format } = directory
  const fault = isSeedOf(masterSeed, format)
    ? faultOf(directory, given)
    : 'The master seed is not the one of this data directory'
  if (fault !== undefined) return refuse(fault)
  const session = await connectToDatabase(config)
  if (typeof session === 'number') return session
  try {
    if ((await readClusterFacts(session, rowKeyOf(masterSeed)))?.id !== format.cluster)
      return refuse(
        `The database does not hold the cluster ${format.cluster}, to which the data directory belongs`,
      )
    const file = knownEndPath(path, given.shard)
    const loss = await lossOrNone(session, { shard: given.shard, known: readKnownEnd(file) })
    if (typeof loss === 'string') return refuse(loss, exitCodes.foundWrong)
    if (loss.from !== given.from) return refuse(`Expected --from ${loss.from}: ${describeLoss(loss)}`)
    noteAcceptedLoss(path, recordOf(loss, cluster.node))
    replaceKnownEnd(file, loss.there)
  } catch (error) {
    if (error instanceof DamagedKnownEnd) return refuse(error.message)
    return refuse(`The loss was not accepted: ${describeDatabaseError(error)}`, exitCodes.foundWrong)
  } finally {
    session.drop()
  }
  process.stdout.write(
    `Accepted that shard ${given.shard} has lost its segments from ${given.from} on; the next start of this node records this on ` +
      'server::audit\n',
  )
  return exitCodes.fine
}

function faultOf({ path, format }: IdleDirectory, { shard }: GivenLoss): string | undefined {
  if (format.cluster === undefined) return `The data directory ${path} does not belong to a node of a cluster`
  return shard < format.shards ? undefined : `Expected --shard to be below ${format.shards}`
}

/** @returns the loss, or a text that says that nothing is missing */
async function lossOrNone(
  session: Session,
  { shard, known }: { shard: number; known: SegmentPosition | undefined },
): Promise<Loss | string> {
  if (known === undefined) return `This node knows of no durable segment of shard ${shard}`
  const loss = await findLoss(session, statementsOf(clusterTables), { shard, known })
  return (
    loss ??
    `Shard ${shard} has lost nothing: its log has segment ${known.number}, the last one that this node knows`
  )
}

function recordOf({ shard, from, known, there }: Loss, node: string) {
  const segmentOf = ({ number, hash }: SegmentPosition) => ({ segment: number, hash: hash.toString('hex') })
  return {
    accepted_at_ms: systemClock(),
    node,
    shard,
    from_segment: from,
    known: segmentOf(known),
    there: there === undefined ? null : segmentOf(there),
  }
}

/** @returns NaN if the text is not the number of a shard or segment */
function parseNumber(text = ''): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
}
