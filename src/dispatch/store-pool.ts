import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { limits } from '../base/limits.js'
import { TaskProgress, type ShardCheck, type ShardCopy } from '../protocol/store-tasks.js'

/** Threads that work on whole stores, and what they are at (docs/adr/0020-backup.md). */
export class StorePool {
  readonly #progress = new TaskProgress()
  readonly #pool: Piscina

  /** @param niced whether a server that runs beside it goes first */
  constructor(niced: boolean) {
    this.#pool = new Piscina({
      filename: fileURLToPath(new URL('../../workers/stores.js', import.meta.url)),
      minThreads: 0,
      maxThreads: Math.min(availableParallelism(), limits.storeThreadsMax),
      niceIncrement: niced ? 10 : 0,
    })
  }

  /** What the work under way has done so far: bytes of rows, steps of records, heads. */
  get done(): number {
    return this.#progress.done
  }

  /** Copies stores as they are at one moment; `done` counts bytes of rows. */
  copy(from: readonly string[], to: readonly string[]): Promise<ShardCopy[]> {
    this.#progress.begin()
    return this.#pool.run({ from, to, progress: this.#progress.memory }, { name: 'copyStores' })
  }

  /** Checks stores, several at once; `done` counts two steps a record. */
  async check(paths: readonly string[]): Promise<ShardCheck[]> {
    this.#progress.begin()
    const progress = this.#progress.memory
    const checks = paths.map((path, shard) => this.#pool.run({ path, shard, progress }, { name: 'checkOne' }))
    // When one fails, none may still open a store, which makes its directory, once this has returned.
    await Promise.allSettled(checks)
    return Promise.all(checks)
  }

  /** The root over the chain heads of all agents, 64 hex digits; `done` counts agents. */
  headsRoot(paths: readonly string[]): Promise<string> {
    this.#progress.begin()
    return this.#pool.run({ paths, progress: this.#progress.memory }, { name: 'rootOfHeads' })
  }

  /** Has the work under way end soon; its promises reject. */
  stop(): void {
    this.#progress.stop()
  }

  /** Ends the threads, when what they do has ended. */
  async close(): Promise<void> {
    await this.#pool.close()
    await this.#pool.destroy()
  }
}
