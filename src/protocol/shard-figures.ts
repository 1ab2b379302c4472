/** Figures of one shard since it started. */
export interface ShardFigures {
  records: number
  commits: number
  /** Seconds in which commits were being written to disk. */
  commitSecs: number
  /** A histogram of commit times with the bounds `appendBoundsSecs`; the last bucket has the rest. */
  appendCounts: number[]
  /** The sum of all commit times, seconds. */
  appendSecs: number
  agents: number
  /** Approximate bytes that wait for a flush to LMDB; since when (Unix ms, 0: none); the flushes so far. */
  memtableBytes: number
  memtableSinceMs: number
  flushes: number
  flushSecs: number
  /** Commits that were replayed from the log into LMDB when the shard was opened. */
  replayed: number
  /** Rows that a sweep could not handle since the shard was opened. */
  setAside: number
}

/** Bounds of commit times, from a RAM disk to a hung disk. */
export const appendBoundsSecs: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5,
]

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
  setAside: 0,
})

/**
 * Counts a value in the first bucket whose bound it does not exceed; the last bucket has the rest.
 * @param counts has one element more than `bounds`, which ascend
 */
export function countInBucket(counts: number[], bounds: readonly number[], value: number): void {
  const found = bounds.findIndex((bound) => value <= bound)
  const index = found < 0 ? bounds.length : found
  counts[index] = (counts[index] ?? 0) + 1
}

export function emptyBuckets(bounds: readonly number[]): number[] {
  return Array.from({ length: bounds.length + 1 }, () => 0)
}
