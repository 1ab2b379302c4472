/**
 * Counts a value in the first bucket whose bound it does not exceed; one more bucket, the last, has the rest.
 * @param counts one more than `bounds`, which rise
 */
export function countInBucket(counts: number[], bounds: readonly number[], value: number): void {
  const found = bounds.findIndex((bound) => value <= bound)
  const place = found < 0 ? bounds.length : found
  counts[place] = (counts[place] ?? 0) + 1
}

/** Counts of no values yet, for as many bounds. */
export function emptyBuckets(bounds: readonly number[]): number[] {
  return Array.from({ length: bounds.length + 1 }, () => 0)
}
