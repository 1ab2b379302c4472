import { DatabaseError } from 'pg'
import { describeDatabase } from '../../outbound/postgres-trouble.js'

/** What a failure of the cluster's database means to who runs it: one sentence, without a full stop. */
export function describeTrouble(error: unknown): string {
  if (error instanceof DatabaseError && error.code === NO_TABLE)
    return 'it holds no cluster: make one by strandfast cluster init, or cluster push'
  return describeDatabase(error)
}

/**
 * Whether it stays so until somebody changes the settings, or the database: its server, its role, its rights, its name, or its tables,
 * which another version made.
 */
export function isUnfit(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isUnfit)
  if (isOther(error) || error instanceof UnfitServer) return true
  if (!(error instanceof DatabaseError)) return false
  const { code = '' } = error
  return [NO_TABLE, NO_COLUMN, NO_RIGHT, NO_DATABASE].includes(code) || code.startsWith('28')
}

/** The tables are those of another version of this program. */
export class OtherVersion extends Error {
  /** @param found the format that the database has, where that is another one than this version reads */
  constructor(found?: number, own?: number) {
    const [isEarlier, isUnknown] = [(found ?? 0) < (own ?? 0), found === own]
    const upgrade = 'stop all nodes and run strandfast cluster upgrade'
    super(
      isUnknown
        ? `its tables are those of another version: use that, or, where it was an earlier one, ${upgrade}`
        : `it holds a cluster of format ${found}, and this program reads format ${own}: ${isEarlier ? upgrade : 'use its version'}`,
    )
  }
}

/** A row was changed, or written by who has another master seed, or none. */
export class UntrueRow extends Error {}

/** Whether the tables are not those of this version and this master seed. */
export function isOther(error: unknown): error is OtherVersion | UntrueRow {
  return error instanceof OtherVersion || error instanceof UntrueRow
}

/** A server that is too old, or would lose what it has acknowledged. */
export class UnfitServer extends Error {}

const NO_TABLE = '42P01'
const NO_COLUMN = '42703'
const NO_RIGHT = '42501'
const NO_DATABASE = '3D000'

/** Whether a statement failed because a column is not there. */
export function isMissingColumn(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === NO_COLUMN
}

/** Whether a statement failed because a table is not there. */
export function isMissingTable(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === NO_TABLE
}

/**
 * What a failed statement means: `taken`, the key is there already; `again`, it was not done and may be done if it is
 * sent again; `unknown`, it may have been done, and the connection is of no more use; `refused`, it was not done, and
 * will not be.
 */
type Failure = 'taken' | 'again' | 'unknown' | 'refused'

const UNIQUE_VIOLATION = '23505'
/** CockroachDB's word for a commit that may have happened. */
const COMPLETION_UNKNOWN = '40003'
const QUERY_CANCELED = '57014'
const READ_ONLY = '25006'
/** The connection did nothing for too long within a transaction, and was ended. */
const IDLE_IN_TRANSACTION = '25P03'

/** Sorts what a statement ended with; whatever did not come from the database says nothing of what the database did. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof DatabaseError)) return 'unknown'
  const { code = '' } = error
  if (code === UNIQUE_VIOLATION) return 'taken'
  if (code === COMPLETION_UNKNOWN || code === IDLE_IN_TRANSACTION) return 'unknown'
  if (code === QUERY_CANCELED || code.startsWith('40') || code.startsWith('53')) return 'again'
  // The server is stopping or starting, or has become a standby: another one may be the primary.
  if (code === READ_ONLY || code.startsWith('57P') || code.startsWith('08')) return 'unknown'
  return 'refused'
}
