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

/** Threads that work on whole stores, and their progress (docs/adr/0020-backup.md). */
export class StorePool {
  readonly #progress = new TaskProgress()
  readonly #pool: ThreadPool
  readonly #underWay = new Set<Promise<unknown>>()

  /** @param niced whether a server that runs beside it has priority */
  constructor(niced: boolean) {
    this.#pool = new ThreadPool({
      name: 'stores',
      file: workerEntry('stores'),
      threads: Math.min(availableParallelism(), limits.storeThreadsMax),
      niced,
      // A copy that begins again has its thread.
      idleMs: 1_000,
    })
  }

  /** The progress of the current work: bytes of rows, steps of records, heads. */
  get done(): number {
    return this.#progress.done
  }

  /**
   * Copies stores as they are at one moment; `done` counts bytes of rows.
   * @param running of a server that runs: `segments` as in `CopyTask`; `taken` is called once the stores may go on
   * @returns nothing where a store has gone on since
   */
  async copy(
    from: readonly string[],
    to: readonly string[],
    running?: { segments: readonly number[]; taken(): void },
  ): Promise<ShardCopy[]> {
    this.#progress.begin()
    const looks = setInterval(() => {
      if (!this.#progress.taken) return
      clearInterval(looks)
      running?.taken()
    }, limits.storeRestLookMs)
    try {
      return await this.#run('copyStores', {
        from: [...from],
        to: [...to],
        ...(running !== undefined && { segments: [...running.segments] }),
        progress: this.#progress.memory,
      })
    } finally {
      clearInterval(looks)
    }
  }

  /** Checks stores, several at once; `done` counts two steps a record. */
  async check(paths: readonly string[]): Promise<ShardCheck[]> {
    this.#progress.begin()
    const progress = this.#progress.memory
    const checks = paths.map((path, shard) => this.#run('checkOne', { path, shard, progress }))
    // If one fails, the others must not open a store (which makes its directory) after this has returned.
    await Promise.allSettled(checks)
    return Promise.all(checks)
  }

  /** The root over the chain heads of all agents, 64 hex digits; `done` counts agents. */
  headsRoot(paths: readonly string[]): Promise<string> {
    this.#progress.begin()
    return this.#run('rootOfHeads', { paths: [...paths], progress: this.#progress.memory })
  }

  /** Makes the current work end soon; its promises reject. */
  stop(): void {
    this.#progress.stop()
  }

  /** Ends the threads when their work has ended. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#underWay)
    await this.#pool.close()
  }

  /** A task may take as long as its store needs; if it makes no progress for long, its thread is ended. */
  async #run<Name extends keyof StoreTasks>(
    name: Name,
    task: StoreTasks[Name]['task'],
  ): Promise<StoreTasks[Name]['found']> {
    const run = this.#pool.run(task, {
      name,
      deadlineMs: limits.storeSilenceMs,
      steps: () => this.#progress.done,
    })
    this.#underWay.add(run)
    try {
      return answerOf(storeAnswers[name], await run)
    } finally {
      this.#underWay.delete(run)
    }
  }
}
