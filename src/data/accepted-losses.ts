import { hash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Type, type Static } from 'typebox'
import { readIfExists, syncDirectory, writeDurably } from '../base/durable-file.js'
import { Hash, UnixMs } from '../wire/primitives.js'
import { reader } from '../wire/validate.js'

/**
 * The file in a node's data directory with accepted losses of the cluster log. The next start records them on
 * the audit strand and removes the file.
 */
const file = 'accepted-losses.json'

/** A segment of a shard's log. */
const Segment = Type.Object({ segment: Type.Integer({ minimum: 0 }), hash: Hash })

const AcceptedLoss = Type.Object({
  accepted_at_ms: UnixMs,
  /** The node that knew the missing segments. */
  node: Type.String(),
  shard: Type.Integer({ minimum: 0 }),
  /** The first missing segment. */
  from_segment: Type.Integer({ minimum: 0 }),
  /** The last segment that the node knew to be durable. */
  known: Segment,
  /** The segment of that number in the log, or the last one; null for an empty log. */
  there: Type.Union([Segment, Type.Null()]),
})

/** An accepted loss in the form of its audit record. */
export type AcceptedLoss = Static<typeof AcceptedLoss>

const lists = reader(Type.Array(AcceptedLoss))

/** Adds a loss unless the file has it; it is on disk when this returns. @throws Error of the file system */
export function noteAcceptedLoss(dataDir: string, loss: AcceptedLoss): void {
  const before = acceptedLosses(dataDir)
  const isThere = before.some(
    (one) => nameOfLoss({ ...one, accepted_at_ms: loss.accepted_at_ms }) === nameOfLoss(loss),
  )
  if (!isThere) writeDurably(join(dataDir, file), `${JSON.stringify([...before, loss])}\n`)
}

/** Returns the losses that the audit strand does not have yet; none if the file cannot be read. */
export function acceptedLosses(dataDir: string): AcceptedLoss[] {
  const text = readIfExists(join(dataDir, file))
  const read = text === undefined ? undefined : lists.bytes(Buffer.from(text))
  return read !== undefined && 'value' in read ? read.value : []
}

/** Removes all losses, after the audit strand has them. */
export function removeAcceptedLosses(dataDir: string): void {
  rmSync(join(dataDir, file), { force: true })
  syncDirectory(dataDir)
}

/** A stable name of a loss, so that an interrupted start does not record it twice. */
export function nameOfLoss(loss: AcceptedLoss): string {
  return hash('sha256', JSON.stringify(loss))
}
