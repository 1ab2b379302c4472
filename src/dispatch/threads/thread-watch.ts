import type { Worker } from 'node:worker_threads'
import { limits } from '../../base/limits/limits.js'
import type { Heartbeat } from '../../protocol/heartbeat.js'
import { Watchdog } from '../pools/watchdog.js'

/**
 * The state of a thread: `hung` once, when it is told to end; `stuck` when it then does not end, for example because it
 * is in a system call.
 */
export type ThreadHealth = 'well' | 'hung' | 'stuck'

/** Watches one thread from its start to its end, and ends it when it hangs (docs/adr/0025-hung-threads.md). */
export class ThreadWatch {
  readonly #worker: Worker
  readonly #heartbeat: Heartbeat
  #watchdog = new Watchdog(limits.shardLookMs)
  #phase: 'opening' | 'serving' | 'ending' = 'opening'
  #silentMs = 0

  constructor(worker: Worker, heartbeat: Heartbeat) {
    this.#worker = worker
    this.#heartbeat = heartbeat
  }

  /** Milliseconds without progress of the thread while it had work. */
  get silentMs(): number {
    return this.#silentMs
  }

  /** True once the thread was told to end because it hung. */
  get ending(): boolean {
    return this.#phase === 'ending'
  }

  /** Its store is open: from now on every command is a step. */
  opened(): void {
    if (this.#phase !== 'opening') return
    this.#phase = 'serving'
    this.#watchdog = new Watchdog(limits.shardLookMs)
  }

  /**
   * @param waiting whether it has commands to carry out
   * @param silenceMaxMs how long it may then make no progress
   */
  look(nowMs: number, { waiting, silenceMaxMs }: { waiting: boolean; silenceMaxMs: number }): ThreadHealth {
    const serving = this.#phase === 'serving'
    this.#silentMs = this.#watchdog.look({
      nowMs,
      waiting: waiting || !serving,
      steps: this.#heartbeat.count,
    })
    if (this.#phase === 'ending') return this.#silentMs >= limits.shardEndMs ? 'stuck' : 'well'
    // Opening a store can take long, and does not count steps.
    if (this.#silentMs < (serving ? silenceMaxMs : limits.shardOpenMs)) return 'well'
    this.#phase = 'ending'
    this.#watchdog = new Watchdog(limits.shardLookMs)
    void this.end()
    return 'hung'
  }

  /** Resolves when the thread has ended. A thread in a system call does not end before the call returns. */
  async end(): Promise<void> {
    await this.#worker.terminate()
  }
}
