import { hash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Type, type Static } from 'typebox'
import { readIfThere, syncDirectory, writeDurably } from '../base/durable-file.js'
import { Hash, UnixMs } from '../wire/primitives.js'
import { reader } from '../wire/validate.js'

/**
 * The file in a node's data directory that says which losses of the cluster's log were accepted there: the next start writes that to
 * the audit strand and removes the file.
 */
const file = 'accepted-losses.json'

/** A segment of a shard's log. */
const Segment = Type.Object({ segment: Type.Integer({ minimum: 0 }), hash: Hash })

const AcceptedLoss = Type.Object({
  accepted_at_ms: UnixMs,
  /** The node that knew better. */
  node: Type.String(),
  shard: Type.Integer({ minimum: 0 }),
  /** The first segment that is missing. */
  from_segment: Type.Integer({ minimum: 0 }),
  /** The last one that the node knew to be durable. */
  known: Segment,
  /** What the log had of that number, or its last segment; null where it had none. */
  there: Type.Union([Segment, Type.Null()]),
})

/** A loss that was accepted, as the audit strand has it. */
export type AcceptedLoss = Static<typeof AcceptedLoss>

const lists = reader(Type.Array(AcceptedLoss))

/** Adds one that is not there yet, on disk when this returns. @throws Error of the file system */
export function noteAcceptedLoss(dataDir: string, loss: AcceptedLoss): void {
  const before = acceptedLosses(dataDir)
  const isThere = before.some(
    (one) => nameOfLoss({ ...one, accepted_at_ms: loss.accepted_at_ms }) === nameOfLoss(loss),
  )
  if (!isThere) writeDurably(join(dataDir, file), `${JSON.stringify([...before, loss])}\n`)
}

/** Those that the audit strand does not have yet; none where the file cannot be read. */
export function acceptedLosses(dataDir: string): AcceptedLoss[] {
  const text = readIfThere(join(dataDir, file))
  const read = text === undefined ? undefined : lists.bytes(Buffer.from(text))
  return read !== undefined && 'value' in read ? read.value : []
}

/** Removes all, after the audit strand has them. */
export function removeAcceptedLosses(dataDir: string): void {
  rmSync(join(dataDir, file), { force: true })
  syncDirectory(dataDir)
}

/** The same for each loss whenever it is written, so that a start which is interrupted does not record it twice. */
export function nameOfLoss(loss: AcceptedLoss): string {
  return hash('sha256', JSON.stringify(loss))
}
