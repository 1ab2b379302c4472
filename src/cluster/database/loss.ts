import { fields, isText, listOf } from '../../base/shape.js'
import { hashOf } from './status.js'
import { DamagedKnownEnd, knownEndPath, readKnownEnd } from './known-end.js'
import type { SegmentPosition } from './register.js'
import { isBuffer, type Session } from './session.js'
import type { ClusterStatements } from './statements.js'

/** Durable segments of a shard that are missing from the log. */
export interface Loss {
  shard: number
  /** The last segment that the node knows to be durable. */
  known: SegmentPosition
  /**
   * What the log has at that number, or its last segment if the log ends earlier; undefined if the log is
   * empty.
   */
  there: SegmentPosition | undefined
  /** The first segment that is certainly missing. */
  from: number
}

/** Compares the log of a shard with what a node knows of it. @returns undefined if nothing is missing */
export async function findLoss(
  session: Session,
  statements: ClusterStatements,
  { shard, known }: Pick<Loss, 'shard' | 'known'>,
): Promise<Loss | undefined> {
  const hash = await hashOf(session, statements, { shard, segment: known.number })
  if (hash?.equals(known.hash) === true) return undefined
  if (hash !== undefined) return { shard, known, there: { number: known.number, hash }, from: known.number }
  const rows: unknown = await session.rows(statements.lastBefore, [shard, known.number])
  if (!areLast(rows)) throw new Error('Malformed log-head row')
  const [last] = rows
  const there = last && { number: Number(last.segment), hash: last.hash }
  return { shard, known, there, from: there === undefined ? 0 : there.number + 1 }
}

/** What is missing and what to do about it: sentences without a full stop. */
export function describeLoss({ shard, known, there, from }: Loss): string {
  const isOther = there?.number === known.number
  const has =
    there === undefined
      ? 'has no segment of it'
      : isOther
        ? `has a different segment ${nameOf(there)}`
        : `ends with segment ${nameOf(there)}`
  return (
    `Shard ${shard} has lost durable segments: this node knows segment ${nameOf(known)}, but the cluster’s log ${has}. Restore a ` +
    `database that has it, or accept the loss on this node: strandfast cluster accept-loss --shard ${shard} --from ${from}`
  )
}

/**
 * Finds what the log has lost of the segments that the data directory of a node knows to be durable.
 * @returns one text for each shard: from `describeLoss`, or that its file is damaged
 */
export async function findLosses(
  dataDir: string,
  { session, statements, shards }: { session: Session; statements: ClusterStatements; shards: number },
): Promise<string[]> {
  const found: string[] = []
  for (let shard = 0; shard < shards; shard++) {
    try {
      const known = readKnownEnd(knownEndPath(dataDir, shard))
      const loss = known && (await findLoss(session, statements, { shard, known }))
      if (loss !== undefined) found.push(describeLoss(loss))
    } catch (error) {
      if (!(error instanceof DamagedKnownEnd)) throw error
      found.push(error.message)
    }
  }
  return found
}

function nameOf({ number, hash }: SegmentPosition): string {
  return `${number} (${hash.toString('hex', 0, 8)}…)`
}

const areLast = listOf(fields({ segment: isText, hash: isBuffer }))
