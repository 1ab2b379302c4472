import { DatabaseError } from 'pg'

/**
 * What a failed statement means: `taken`, the key is there already; `again`, it was not done and may be done if it is
 * sent again; `unknown`, it may have been done, and the connection is of no more use; `refused`, it was not done, and
 * will not be.
 */
export type Failure = 'taken' | 'again' | 'unknown' | 'refused'

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
