import { limits } from '../../base/limits/limits.js'

/** A request to the database, which answered with its time of day, Unix milliseconds. */
export interface ClockReading {
  sentAtMs: number
  answeredAtMs: number
  databaseMs: number
}

/**
 * How far the clock of this machine is ahead of the database's, milliseconds; negative if it is behind. The
 * smallest difference that the reading allows, because the database may have answered at any time between.
 */
export function clockAheadMs({ sentAtMs, answeredAtMs, databaseMs }: ClockReading): number {
  const [least, most] = [sentAtMs - databaseMs, answeredAtMs - databaseMs]
  if (least > 0) return least
  return most < 0 ? most : 0
}

/** Whether the clock of a node is worth a warning, and how far it is off: a predicate whose subject is it. */
export function clockWarning(aheadMs = 0): string | undefined {
  if (Math.abs(aheadMs) <= limits.clusterClockWarnMs) return undefined
  return `is ${(Math.abs(aheadMs) / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the database’s`
}

/**
 * Why a node must not own shards: its clock agrees neither with the database's nor with those of more than
 * half of the other nodes. It would sign times that the others cannot follow for minutes.
 * @param aheadMs of the node
 * @param others the same of the other live nodes, as far as they have reported it
 */
export function clockFault(aheadMs: number, others: readonly number[]): string | undefined {
  const agrees = (otherMs: number) => Math.abs(aheadMs - otherMs) <= limits.clusterClockMs
  if (agrees(0) || others.filter(agrees).length * 2 > others.length) return undefined
  return clockWarning(aheadMs)
}
