import { compareHlc, type Hlc } from './hlc.js'

/**
 * A position in the log of a shard: after all records with this timestamp or an earlier one. Strands that
 * were moved from different shards can have records with equal timestamps; these are ordered by hash, and
 * `tie` is the last one included.
 */
export interface RecordPosition extends Hlc {
  /** The first 64 bits of a record's hash, hex. */
  tie?: string
}

/** The parts of a record that determine its position in the log. */
export interface LoggedRecord {
  hlc: Hlc
  hash: string
}

const TIE_DIGITS = 16

/** Distinguishes a record from others with the same timestamp. */
export function tieOf({ hash }: LoggedRecord): string {
  return hash.slice(0, TIE_DIGITS)
}

/** Whether a record is after a position. */
export function isAfterPosition(record: LoggedRecord, position: RecordPosition): boolean {
  const order = compareHlc(record.hlc, position)
  return order > 0 || (order === 0 && position.tie !== undefined && tieOf(record) > position.tie)
}

export function laterPosition(a: RecordPosition, b: RecordPosition): RecordPosition {
  const order = compareHlc(a, b)
  if (order !== 0) return order < 0 ? b : a
  if (a.tie === undefined || b.tie === undefined) return a.tie === undefined ? a : b
  return a.tie < b.tie ? b : a
}

export function earlierPosition(a: RecordPosition, b: RecordPosition): RecordPosition {
  return laterPosition(a, b) === a ? b : a
}
