/** A disk that syncs within so long is waited for, milliseconds. */
export const quickSyncMs = 1

/** Syncs that are looked back at. */
const LAST = 8
/** While the disk is slow, every so many groups a sync is waited for, to see whether it still is. */
const LOOK_EVERY = 64

/**
 * Whether a thread waits for the syncs of its disk itself. Handing a sync to another thread and hearing of its end takes
 * some tenths of a millisecond of processor time, in which a good disk is long done; and groups that are decided meanwhile
 * are smaller. Upon a disk that takes longer, the next group is decided meanwhile.
 */
export class DiskPace {
  #lastMs: number[] = []
  #looks = 0

  /** A sync that the thread waited for. */
  took(ms: number): void {
    this.#lastMs = [...this.#lastMs.slice(1 - LAST), ms]
  }

  /** Whether the thread should wait for the next one; asked once a group. */
  waits(): boolean {
    // The quickest one: the others may have waited for a processor.
    if (this.#lastMs.length === 0 || Math.min(...this.#lastMs) <= quickSyncMs) return true
    this.#looks = (this.#looks + 1) % LOOK_EVERY
    return this.#looks === 0
  }
}
