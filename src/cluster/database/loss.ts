import { fields, isText, listOf } from '../../base/shape.js'
import { hashOf } from './standing.js'
import { DamagedEnd, knownEndPath, readKnownEnd } from './known-end.js'
import type { SegmentPosition } from './register.js'
import { isBuffer, type Session } from './session.js'
import type { ClusterStatements } from './statements.js'

/** Durable segments of a shard that the log does not have any more. */
export interface Loss {
  shard: number
  /** The last segment that the node knows to be durable. */
  known: SegmentPosition
  /** What the log has of that number, or its last segment where it ends before; undefined where it has none. */
  there: SegmentPosition | undefined
  /** The first segment that is missing for certain. */
  from: number
}

/** Compares what a node knows of a shard's log with the log. @returns undefined where nothing is missing */
export async function lossOf(
  session: Session,
  statements: ClusterStatements,
  { shard, known }: Pick<Loss, 'shard' | 'known'>,
): Promise<Loss | undefined> {
  const hash = await hashOf(session, statements, { shard, segment: known.number })
  if (hash?.equals(known.hash) === true) return undefined
  if (hash !== undefined) return { shard, known, there: { number: known.number, hash }, from: known.number }
  const rows: unknown = await session.rows(statements.lastBefore, [shard, known.number])
  if (!areLast(rows)) throw new Error('Expected the end of a log that a cluster has')
  const [last] = rows
  const there = last && { number: Number(last.segment), hash: last.hash }
  return { shard, known, there, from: there === undefined ? 0 : there.number + 1 }
}

/** What is missing, and what can be done about it: sentences without a full stop. */
export function describeLoss({ shard, known, there, from }: Loss): string {
  const isOther = there?.number === known.number
  const has =
    there === undefined
      ? 'has no segment of it'
      : isOther
        ? `has another segment ${nameOf(there)}`
        : `ends with segment ${nameOf(there)}`
  return (
    `Shard ${shard} has lost durable segments: this node knows segment ${nameOf(known)}, and the cluster’s log ${has}. Bring back a ` +
    `database that has it, or accept the loss on this node: strandfast cluster accept-loss --shard ${shard} --from ${from}`
  )
}

/**
 * What the log lacks of what the directory of a node knows.
 * @returns one text a shard, as `describeLoss` makes it, or that its file is damaged
 */
export async function lossesIn(
  dataDir: string,
  { session, statements, shards }: { session: Session; statements: ClusterStatements; shards: number },
): Promise<string[]> {
  const found: string[] = []
  for (let shard = 0; shard < shards; shard++) {
    try {
      const known = readKnownEnd(knownEndPath(dataDir, shard))
      const loss = known && (await lossOf(session, statements, { shard, known }))
      if (loss !== undefined) found.push(describeLoss(loss))
    } catch (error) {
      if (!(error instanceof DamagedEnd)) throw error
      found.push(error.message)
    }
  }
  return found
}

function nameOf({ number, hash }: SegmentPosition): string {
  return `${number} (${hash.toString('hex', 0, 8)}…)`
}

const areLast = listOf(fields({ segment: isText, hash: isBuffer }))
