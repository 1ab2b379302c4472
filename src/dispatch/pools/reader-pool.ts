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

/** Whether a thread was out of file descriptors. A system error arrives from a thread without its code. */
function isOutOfDescriptors(error: unknown): boolean {
  return error instanceof Error && /^(?:EMFILE|ENFILE): /.test(error.message)
}

export interface ReaderPoolOptions {
  /** How long a read waits for a shard that is away, milliseconds. */
  shardWaitMs?: number
  listener?: PoolListener
  /** Undefined outside a cluster. */
  lease?: LeaseMemory | undefined
}

/**
 * A pool of low-priority threads for long reads. A read is a task for each page, and callers take turns, so
 * that the exports of one delay those of another by a page each. Each waiting task is of an open request, whose
 * number is limited.
 *
 * A process has one LMDB environment per store. After a failed commit, it takes no writes until all threads
 * have closed it (docs/adr/0024-damage.md). So when the thread of a shard ends, the reader threads are
 * replaced. The new threads do not open the store of that shard until it serves again; tasks for it wait for
 * a limited time.
 *
 * Terminating a thread during a native call may crash the process. A task reads only one page, so a thread is
 * ended after its task.
 */
export class ReaderPool implements Readers {
  readonly #pool: ThreadPool
  readonly #shardWaitMs: number
  readonly #lease: LeaseMemory | undefined
  /** Shards that are away, each with the tasks that wait for it. */
  readonly #away = new Map<number, Set<() => void>>()
  constructor(
    dataDir: string,
    { shardWaitMs = limits.readerWaitMs, listener, lease }: ReaderPoolOptions = {},
  ) {
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
      ...(listener !== undefined && { listener }),
    })
  }

  get figures(): PoolFigures {
    return this.#pool.figures
  }

  /** Closes the store of a shard in all readers. No reader opens it again before `resume`. */
  release(shard: number): Promise<void> {
    if (!this.#away.has(shard)) this.#away.set(shard, new Set())
    return this.#pool.renew()
  }

  /** A shard serves again. */
  resume(shard: number): void {
    const waiting = this.#away.get(shard)
    this.#away.delete(shard)
    for (const resume of waiting ?? []) resume()
  }

  close(): Promise<void> {
    return this.#pool.close()
  }

  /**
   * Runs a task. The deadline grows with the leaves of a tree that may have to be computed.
   * @throws RefusedError when the shard stays away too long, no thread can be started, no store can be
   * opened, or another node of a cluster may have taken over
   */
  async run({ name, task, caller }: ReadCall): Promise<unknown> {
    const leaves = 'size' in task ? task.size : 0
    const deadlineMs = limits.readerTaskMs + (leaves * 1_000) / limits.readerLeavesPerSec
    // The check of an import reads no store.
    if (!('shard' in task)) return this.#pool.run(task, { name, caller, deadlineMs })
    for (;;) {
      try {
        const unless = () => this.#away.has(task.shard)
        const found = await this.#pool.run(task, { name, caller, deadlineMs, unless })
        const leaseRefusal = this.#lease?.refusal()
        if (leaseRefusal !== undefined) throw new RefusedError(leaseRefusal)
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
    const isServing = await new Promise<boolean>((resolve) => {
      const resume = () => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(() => {
        waiting.delete(resume)
        resolve(false)
      }, this.#shardWaitMs)
      waiting.add(resume)
    })
    if (!isServing) throw new RefusedError(shardAway)
  }
}
