import { availableParallelism } from 'node:os'
import { workerEntry } from '../../base/worker-entry.js'
import { limits } from '../../base/limits/limits.js'
import { answerOf } from '../../protocol/pool-tasks.js'
import {
  TaskProgress,
  storeAnswers,
  type ShardCheck,
  type ShardCopy,
  type StoreTasks,
} from '../../protocol/store-tasks.js'
import { ThreadPool } from './thread-pool.js'

/** Threads for tasks on whole stores, with their progress (docs/adr/0020-backup.md). */
export class StorePool {
  readonly #progress = new TaskProgress()
  readonly #pool: ThreadPool
  readonly #running = new Set<Promise<unknown>>()

  /** @param niced whether the threads have a lower priority than a server on this machine */
  constructor(niced: boolean) {
    this.#pool = new ThreadPool({
      name: 'stores',
      file: workerEntry('stores'),
      threads: Math.min(availableParallelism(), limits.storeThreadsMax),
      niced,
      // A retried copy finds its thread alive.
      idleMs: 1_000,
    })
  }

  /** The progress of the current task: bytes of rows, steps of records, or heads. */
  get done(): number {
    return this.#progress.done
  }

  /**
   * Copies stores as of one moment; `done` counts bytes of rows.
   * @param running for the stores of a running server: `segments` as in `CopyTask`; `taken` is called when
   * the shards may write again
   * @returns an empty list when a store was written in the meantime
   */
  async copy(
    from: readonly string[],
    to: readonly string[],
    running?: { segments: readonly number[]; taken(): void },
  ): Promise<ShardCopy[]> {
    this.#progress.begin()
    const timer = setInterval(() => {
      if (!this.#progress.hasSnapshots) return
      clearInterval(timer)
      running?.taken()
    }, limits.storePauseCheckMs)
    try {
      return await this.#run('copyStores', {
        from: [...from],
        to: [...to],
        ...(running !== undefined && { segments: [...running.segments] }),
        progress: this.#progress.memory,
      })
    } finally {
      clearInterval(timer)
    }
  }

  /** Checks stores in parallel; `done` counts two steps per record. */
  async check(paths: readonly string[]): Promise<ShardCheck[]> {
    this.#progress.begin()
    const progress = this.#progress.memory
    const checks = paths.map((path, shard) => this.#run('checkOne', { path, shard, progress }))
    // After a failure, wait for the others: none may open a store, which creates its directory, after this
    // returns.
    await Promise.allSettled(checks)
    return Promise.all(checks)
  }

  /** The root over the chain heads of all agents, 64 hex digits; `done` counts agents. */
  headsRoot(paths: readonly string[]): Promise<string> {
    this.#progress.begin()
    return this.#run('rootOfHeads', { paths: [...paths], progress: this.#progress.memory })
  }

  /** Stops the current tasks soon; their promises reject. */
  stop(): void {
    this.#progress.stop()
  }

  /** Ends the threads after their tasks. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#running)
    await this.#pool.close()
  }

  /** A task has no time limit, but its thread is ended after a long time without progress. */
  async #run<Name extends keyof StoreTasks>(
    name: Name,
    task: StoreTasks[Name]['task'],
  ): Promise<StoreTasks[Name]['found']> {
    const run = this.#pool.run(task, {
      name,
      deadlineMs: limits.storeStallMs,
      steps: () => this.#progress.done,
    })
    this.#running.add(run)
    try {
      return answerOf(storeAnswers[name], await run)
    } finally {
      this.#running.delete(run)
    }
  }
}
