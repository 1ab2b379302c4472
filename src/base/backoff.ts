/** The first and the longest delay of an exponential back-off, milliseconds. */
export interface Backoff {
  firstMs: number
  maxMs: number
}

/**
 * The delay before the next attempt, which doubles with each failure.
 * @param failures number of consecutive failures, from 1
 * @param random returns a number from 0 to 1, for a random delay in the upper half, so that callers that
 * failed at the same time do not retry at the same time; by default the whole delay
 */
export function backoffMs(backoff: Backoff, failures: number, random = () => 1): number {
  const ceilingMs = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(failures - 1, 30))
  return Math.round(ceilingMs * (0.5 + random() / 2))
}
