import type { Worker } from 'node:worker_threads'
import { limits } from '../../base/limits/limits.js'
import type { Heartbeat } from '../../protocol/heartbeat.js'
import { Watchdog } from '../pools/watchdog.js'

/** `hung` when the thread is terminated for a stall, `stuck` if it then does not end (a system call). */
export type ThreadHealth = 'well' | 'hung' | 'stuck'

/** Watches one thread and ends it when it hangs (docs/adr/0025-hung-threads.md). */
export class ThreadWatch {
  readonly #worker: Worker
  readonly #heartbeat: Heartbeat
  #watchdog = new Watchdog(limits.shardCheckMs)
  #phase: 'opening' | 'serving' | 'ending' = 'opening'
  #silentMs = 0

  constructor(worker: Worker, heartbeat: Heartbeat) {
    this.#worker = worker
    this.#heartbeat = heartbeat
  }

  /** Milliseconds without progress while the thread had work. */
  get silentMs(): number {
    return this.#silentMs
  }

  /** True after the thread was terminated because it hung. */
  get ending(): boolean {
    return this.#phase === 'ending'
  }

  /** The store is open: from now on every command is a step. */
  opened(): void {
    if (this.#phase !== 'opening') return
    this.#phase = 'serving'
    this.#watchdog = new Watchdog(limits.shardCheckMs)
  }

  /**
   * @param waiting whether the thread has pending commands
   * @param stallMaxMs how long it may then make no progress
   */
  check(nowMs: number, { waiting, stallMaxMs }: { waiting: boolean; stallMaxMs: number }): ThreadHealth {
    const serving = this.#phase === 'serving'
    this.#silentMs = this.#watchdog.look({
      nowMs,
      waiting: waiting || !serving,
      steps: this.#heartbeat.count,
    })
    if (this.#phase === 'ending') return this.#silentMs >= limits.shardEndMs ? 'stuck' : 'well'
    // Opening a store can take long and counts no steps.
    if (this.#silentMs < (serving ? stallMaxMs : limits.shardOpenMs)) return 'well'
    this.#phase = 'ending'
    this.#watchdog = new Watchdog(limits.shardCheckMs)
    void this.end()
    return 'hung'
  }

  /** Resolves when the thread has ended. A thread in a system call does not end before the call returns. */
  async end(): Promise<void> {
    await this.#worker.terminate()
  }
}
