/** Why a database did not answer in time: from outside, the causes look the same. */
export const LATE =
  'the database did not answer in time; it may be waiting for its standby, or for a lock that another session holds'

/** A time limit for work on a connection. */
interface TimeLimit {
  ms: number
  /** Closes the connection, so that the work fails. */
  drop(): void
  /** The message if the time is over. */
  late?: string
}

/** Runs work within a time limit: a network can drop packets indefinitely. @throws Error as the work does */
export async function withinTime<T>(
  { ms, drop, late = LATE }: TimeLimit,
  work: () => Promise<T>,
): Promise<T> {
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    drop()
  }, ms)
  try {
    return await work()
  } catch (error) {
    throw isLate ? new Error(late, { cause: error }) : error
  } finally {
    clearTimeout(timer)
  }
}
