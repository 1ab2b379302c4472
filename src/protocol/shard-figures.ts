/** Figures of one shard since it started. */
export interface ShardFigures {
  records: number
  commits: number
  /** Seconds in which a commit was on its way to the disk. */
  commitSecs: number
  /** How many commits took at most as long as each of `appendBoundsSecs` to be on disk, and not as long as the one before; then the rest. */
  appendCounts: number[]
  /** Seconds that all of them took together. */
  appendSecs: number
  agents: number
  /** Bytes of rows that wait for the next flush to LMDB, roughly, since when (UTC, milliseconds; 0: none waits), and what the flushes took. */
  memtableBytes: number
  memtableSinceMs: number
  flushes: number
  flushSecs: number
  /** Commits that the log had and LMDB had not when the shard was opened. */
  replayed: number
}

/** Bounds of the times that commits take, from a memory of a disk to one that hangs. */
export const appendBoundsSecs: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5,
]

/** Those of a shard that has done nothing yet. */
export const noFigures = (): ShardFigures => ({
  records: 0,
  commits: 0,
  commitSecs: 0,
  appendCounts: emptyBuckets(appendBoundsSecs),
  appendSecs: 0,
  agents: 0,
  memtableBytes: 0,
  memtableSinceMs: 0,
  flushes: 0,
  flushSecs: 0,
  replayed: 0,
})

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
