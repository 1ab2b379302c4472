import { DatabaseError } from 'pg'
import { adviceForFormat1 } from '../../base/version.js'
import { describeDatabase } from '../../outbound/postgres-errors.js'

/** What a failure of the cluster's database means for the operator: one sentence, without a full stop. */
export function describeDatabaseError(error: unknown): string {
  if (error instanceof DatabaseError && error.code === NO_TABLE)
    return `a table of the cluster is missing: ${error.message}`
  return describeDatabase(error)
}

/**
 * Whether the error persists until an operator changes the settings or the database: the server, its role,
 * its privileges, its name, or tables of another version.
 */
export function isUnfit(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isUnfit)
  if (isForeign(error) || error instanceof UnfitServer) return true
  if (!(error instanceof DatabaseError)) return false
  const { code = '' } = error
  return [NO_TABLE, NO_COLUMN, NO_RIGHT, NO_DATABASE].includes(code) || code.startsWith('28')
}

export class OtherVersion extends Error {
  /** Whether the tables may also be damaged ones of this version. */
  readonly isUnknown: boolean

  /** @param found the format in the database, if it differs from the one that this version reads */
  constructor(found?: number, own?: number) {
    const isUnknown = found === own
    super(
      isUnknown
        ? 'its tables were created by another version of Strandfast: use that version'
        : `it holds a cluster of format ${found}, and this program reads format ${own}: ${found === 1 ? adviceForFormat1 : 'use a newer version'}`,
    )
    this.isUnknown = isUnknown
  }
}

/** A row was changed, or was written without the master seed of this cluster. */
export class UnverifiedRow extends Error {}

/** Whether the tables belong to another version or to another master seed. */
export function isForeign(error: unknown): error is OtherVersion | UnverifiedRow {
  return error instanceof OtherVersion || error instanceof UnverifiedRow
}

/** The server is too old, or could lose acknowledged writes. */
export class UnfitServer extends Error {}

const NO_TABLE = '42P01'
const NO_COLUMN = '42703'
const NO_RIGHT = '42501'
const NO_DATABASE = '3D000'

/** Whether a statement failed because a column is missing. */
export function isMissingColumn(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === NO_COLUMN
}

/** Whether a statement failed because a table is missing. */
export function isMissingTable(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === NO_TABLE
}

/**
 * The class of a failed statement. `taken`: the key exists. `again`: the statement had no effect and may
 * succeed if repeated. `unknown`: it may have taken effect, and the connection is unusable. `refused`: it had
 * no effect and will not succeed.
 */
type Failure = 'taken' | 'again' | 'unknown' | 'refused'

const UNIQUE_VIOLATION = '23505'
/** CockroachDB's code for a commit that may have happened. */
const COMPLETION_UNKNOWN = '40003'
const QUERY_CANCELED = '57014'
const READ_ONLY = '25006'
/** The transaction was idle for too long, and the server closed the connection. */
const IDLE_IN_TRANSACTION = '25P03'

/** Classifies the error of a statement; an error that is not from the database leaves the outcome unknown. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof DatabaseError)) return 'unknown'
  const { code = '' } = error
  if (code === UNIQUE_VIOLATION) return 'taken'
  if (code === COMPLETION_UNKNOWN || code === IDLE_IN_TRANSACTION) return 'unknown'
  if (code === QUERY_CANCELED || code.startsWith('40') || code.startsWith('53')) return 'again'
  // The server is starting or stopping, or has become a standby; another server may be the primary.
  if (code === READ_ONLY || code.startsWith('57P') || code.startsWith('08')) return 'unknown'
  return 'refused'
}
