/** A disk whose syncs take at most this long is fast, milliseconds. */
export const fastSyncMs = 1

/** The number of recent syncs that are considered. */
const RECENT_SYNCS = 8
/** While the disk is slow, the thread waits for every 64th sync, to measure the disk again. */
const PROBE_INTERVAL = 64

/**
 * Decides whether a shard's thread waits for a sync itself. A sync in another thread costs some tenths of a
 * millisecond of CPU time, more than a fast disk needs for the sync, and leads to smaller groups. With a slow
 * disk, the shard decides the next group during the sync.
 */
export class DiskPace {
  #recentMs: number[] = []
  #groups = 0

  /** Records the time of a sync that the thread waited for. */
  recordSync(ms: number): void {
    this.#recentMs = [...this.#recentMs.slice(1 - RECENT_SYNCS), ms]
  }

  /** Whether the thread should wait for the next sync. Call it once for each group. */
  shouldWait(): boolean {
    // Only the fastest sync counts, because the others may have waited for a CPU.
    if (this.#recentMs.length === 0 || Math.min(...this.#recentMs) <= fastSyncMs) return true
    this.#groups = (this.#groups + 1) % PROBE_INTERVAL
    return this.#groups === 0
  }
}
