import { workerEntry } from '../../base/worker-entry.js'
import { RefusedError, refuse } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { ReadCall, Readers, ReaderSettings } from '../../protocol/reader-tasks.js'
import { Skipped, ThreadPool, type PoolFigures, type PoolListener } from './thread-pool.js'

const shardAway = refuse('unavailable', 'The shard of this agent is restarting, try again', {
  retryAfterSecs: 1,
})

const noDescriptors = refuse('unavailable', 'The server has too many files open to read a store, try again', {
  retryAfterSecs: 1,
})

/**
 * Whether a thread could not open a store. A system error arrives from a thread without its code, only with its text.
 */
function isOutOfDescriptors(error: unknown): boolean {
  return error instanceof Error && /^(?:EMFILE|ENFILE): /.test(error.message)
}

/** Options of the readers. */
export interface ReaderPoolOptions {
  /** How long a read waits for a shard that does not serve, milliseconds. */
  shardWaitMs?: number
  told?: PoolListener
  /** Of a node of a cluster. */
  lease?: LeaseMemory | undefined
}

/**
 * The pool of low-priority threads for long reads. Its queue is bounded; callers ask `isFull` before.
 *
 * A process has one LMDB environment for a store. After a failed commit it takes no writes until all threads have
 * closed it (docs/adr/0024-damage.md). So these threads are ended when a shard's thread has ended, and new ones
 * continue with the waiting tasks. They do not open that shard's store until it serves again; tasks for it wait for a
 * while.
 *
 * A native call that returns to a thread which is being ended may end the process. A task is only one page, so a thread is
 * ended after it.
 */
export class ReaderPool implements Readers {
  readonly #pool: ThreadPool
  readonly #shardWaitMs: number
  readonly #lease: LeaseMemory | undefined
  /** Shards that do not serve, each with the tasks that wait for it to serve. */
  readonly #away = new Map<number, Set<() => void>>()
  #waiting = 0

  constructor(dataDir: string, { shardWaitMs = limits.readerWaitMs, told, lease }: ReaderPoolOptions = {}) {
    const workerData: ReaderSettings = { dataDir }
    this.#shardWaitMs = shardWaitMs
    this.#lease = lease
    this.#pool = new ThreadPool({
      name: 'readers',
      file: workerEntry('reader'),
      workerData,
      threads: limits.readerThreadsMax,
      niced: true,
      idleMs: limits.readerIdleMs,
      waitMs: limits.poolWaitMs,
      ...(told !== undefined && { told }),
    })
  }

  /** True when another task would be refused. */
  isFull(): boolean {
    return this.#pool.waiting + this.#waiting >= limits.readerQueueMax
  }

  get figures(): PoolFigures {
    return this.#pool.figures
  }

  /**
   * A shard's thread has ended. When this resolves, no thread has its store open any more, nor opens it until `resume`.
   */
  letGo(shard: number): Promise<void> {
    if (!this.#away.has(shard)) this.#away.set(shard, new Set())
    return this.#pool.renew()
  }

  /** A shard serves again. */
  resume(shard: number): void {
    const waiting = this.#away.get(shard)
    this.#away.delete(shard)
    for (const go of waiting ?? []) go()
  }

  close(): Promise<void> {
    return this.#pool.close()
  }

  /**
   * Carries out a task. A tree may have to be computed from its leaves, which takes longer the more there are.
   * @throws RefusedError when the shard does not serve soon enough, no thread can be started, none can open the store, or
   * another node of a cluster may have gone on meanwhile
   */
  async run({ name, task }: ReadCall): Promise<unknown> {
    const leaves = 'size' in task ? task.size : 0
    const deadlineMs = limits.readerTaskMs + (leaves * 1_000) / limits.readerLeavesPerSec
    // The check of an import reads no store.
    if (!('shard' in task)) return this.#pool.run(task, { name, deadlineMs })
    for (;;) {
      try {
        const unless = () => this.#away.has(task.shard)
        const found = await this.#pool.run(task, { name, deadlineMs, unless })
        const cutOff = this.#lease?.refusal()
        if (cutOff !== undefined) throw new RefusedError(cutOff)
        return found
      } catch (error) {
        if (isOutOfDescriptors(error)) throw new RefusedError(noDescriptors, error)
        if (!(error instanceof Skipped)) throw error
      }
      await this.#untilServing(task.shard)
    }
  }

  async #untilServing(shard: number): Promise<void> {
    const waiting = this.#away.get(shard)
    if (waiting === undefined) return
    this.#waiting++
    const serves = await new Promise<boolean>((resolve) => {
      const go = () => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(() => {
        waiting.delete(go)
        resolve(false)
      }, this.#shardWaitMs)
      waiting.add(go)
    })
    this.#waiting--
    if (!serves) throw new RefusedError(shardAway)
  }
}
