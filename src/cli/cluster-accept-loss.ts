import { systemClock } from '../base/clock.js'
import { noteAcceptedLoss } from '../data/accepted-losses.js'
import { type IdleDirectory, isSeedOf } from '../data/directory.js'
import { DamagedEnd, knownEndPath, readKnownEnd, replaceKnownEnd } from '../cluster/database/known-end.js'
import { describeLoss, type Loss, lossOf } from '../cluster/database/loss.js'
import { rowKeyOf } from '../data/derived-keys.js'
import { factsOf } from '../cluster/database/make.js'
import type { SegmentPosition } from '../cluster/database/register.js'
import type { Session } from '../cluster/database/session.js'
import { clusterTables, statementsOf } from '../cluster/database/statements.js'
import { describeTrouble } from '../cluster/database/trouble.js'
import { clusterUsage, onIdleDirectory, reach, tell, type UsableSettings } from './cluster-settings.js'
import { command, exitCodes } from './command.js'

/** What is accepted. */
interface GivenLoss {
  shard: number
  from: number
}

/**
 * Has a stopped node accept that the log of its cluster lacks what it knows to be durable (docs/CLUSTER.md). Its next start writes
 * that to the audit strand, and sets aside a store that the log does not have.
 * @returns the exit code: 0 accepted; 1 nothing is missing, or failed; 75 the database cannot be reached; 78 wrong usage, settings or
 * directory, or another segment than the first that is missing
 */
export const clusterAcceptLossCommand = command({
  usage: clusterUsage,
  options: { shard: { type: 'string' }, from: { type: 'string' }, 'data-dir': { type: 'string' } },
  read({ shard, from, 'data-dir': dataDir }) {
    const loss = { shard: numberIn(shard), from: numberIn(from) }
    return Number.isNaN(loss.shard) || Number.isNaN(loss.from)
      ? 'Expected --shard N and --from SEGMENT, the first one that is missing'
      : { loss, dataDir }
  },
  run: ({ loss, dataDir }) =>
    onIdleDirectory(dataDir, (directory, settings) => acceptIn(directory, settings, loss)),
})

async function acceptIn(
  directory: IdleDirectory,
  { config, cluster, masterSeed }: UsableSettings,
  given: GivenLoss,
): Promise<number> {
  const { path, format } = directory
  const fault = isSeedOf(masterSeed, format)
    ? faultOf(directory, given)
    : 'The master seed given is not the one that the data directory was made with'
  if (fault !== undefined) return refused(fault)
  const session = await reach(config)
  if (typeof session === 'number') return session
  try {
    if ((await factsOf(session, rowKeyOf(masterSeed)))?.id !== format.cluster)
      return refused(
        `The database does not hold the cluster ${format.cluster}, whose node has the data directory`,
      )
    const file = knownEndPath(path, given.shard)
    const loss = await missing(session, { shard: given.shard, known: readKnownEnd(file) })
    if (typeof loss === 'string') {
      tell(loss)
      return exitCodes.foundWrong
    }
    if (loss.from !== given.from) return refused(`Expected --from ${loss.from}: ${describeLoss(loss)}`)
    noteAcceptedLoss(path, recordOf(loss, cluster.node))
    replaceKnownEnd(file, loss.there)
  } catch (error) {
    if (error instanceof DamagedEnd) return refused(error.message)
    tell(`Not done: ${describeTrouble(error)}`)
    return exitCodes.foundWrong
  } finally {
    session.drop()
  }
  process.stdout.write(
    `Accepted that shard ${given.shard} has lost its segments from ${given.from} on; the next start of this node records it on ` +
      'server::audit\n',
  )
  return exitCodes.fine
}

function faultOf({ path, format }: IdleDirectory, { shard }: GivenLoss): string | undefined {
  if (format.cluster === undefined) return `The data directory ${path} is not that of a node of a cluster`
  return shard < format.shards ? undefined : `Expected --shard to be below ${format.shards}`
}

/** @returns a text where nothing is missing */
async function missing(
  session: Session,
  { shard, known }: { shard: number; known: SegmentPosition | undefined },
): Promise<Loss | string> {
  if (known === undefined) return `This node knows nothing of shard ${shard} that could be missing`
  const loss = await lossOf(session, statementsOf(clusterTables), { shard, known })
  return (
    loss ??
    `Nothing is missing of shard ${shard}: its log has segment ${known.number}, the last that this node knows`
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

/** NaN where a text is not a number of a shard or segment. */
function numberIn(text = ''): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
}

function refused(detail: string): number {
  tell(detail)
  return exitCodes.configuration
}
