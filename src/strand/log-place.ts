import { compareHlc, type Hlc } from './hlc.js'

/**
 * A place in the log of a shard: after every record with this clock reading or an earlier one. Strands that came from
 * different shards can have records with the same reading; `tie` then says after which of them, in the order of their
 * hashes.
 */
export interface LogPlace extends Hlc {
  /** The first 64 bits of a record's hash, hex. */
  tie?: string
}

/** The parts of a record that say where it is in the log of its shard. */
export interface Logged {
  hlc: Hlc
  hash: string
}

const TIE_DIGITS = 16

/** Distinguishes a record from others with the same reading. */
export function tieOf({ hash }: Logged): string {
  return hash.slice(0, TIE_DIGITS)
}

/** Whether a record comes after a place. */
export function isBehind(record: Logged, place: LogPlace): boolean {
  const order = compareHlc(record.hlc, place)
  return order > 0 || (order === 0 && place.tie !== undefined && tieOf(record) > place.tie)
}

/** The later of two places in one log. */
export function laterPlace(a: LogPlace, b: LogPlace): LogPlace {
  const order = compareHlc(a, b)
  if (order !== 0) return order < 0 ? b : a
  if (a.tie === undefined || b.tie === undefined) return a.tie === undefined ? a : b
  return a.tie < b.tie ? b : a
}

/** The earlier of two places in one log. */
export function earlierPlace(a: LogPlace, b: LogPlace): LogPlace {
  return laterPlace(a, b) === a ? b : a
}
