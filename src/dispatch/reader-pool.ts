import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { limits } from '../base/limits.js'
import type {
  ConsistencyFound,
  ConsistencyTask,
  ExportPage,
  ExportPageTask,
  ImportChecked,
  ImportCheckTask,
  InclusionTask,
  ReaderSettings,
  TreeTask,
} from '../protocol/reader-tasks.js'

/** What a long read of one shard's store is given. */
type ShardTask = ExportPageTask | TreeTask | { shard: number; agentNo: number; seq: number }

/**
 * The pool of niced threads for long reads. Its queue is bounded: past that a task is refused at once.
 *
 * LMDB has one environment of a store in a process: one that a commit failed in takes no writes until all threads have
 * let go of it (docs/adr/0024-damage.md). So the threads are ended when a shard's thread has ended, and others begin anew
 * what was asked of them: a task changes nothing. That shard's store is not opened until it serves again; what is asked
 * of it waits for that a while.
 */
export class ReaderPool {
  readonly #dataDir: string
  readonly #waitMs: number
  /** Shards that do not serve, each with the tasks that wait for it. */
  readonly #away = new Map<number, Set<() => void>>()
  #waiting = 0
  /** Settles when the threads before have ended. */
  #ended: Promise<void> = Promise.resolve()
  #pool: Piscina
  #closing = false

  /** @param waitMs how long a read waits for a shard that does not serve */
  constructor(dataDir: string, waitMs: number = limits.readerWaitMs) {
    this.#dataDir = dataDir
    this.#waitMs = waitMs
    this.#pool = startPool(dataDir)
  }

  /** True when another task would be refused. */
  get full(): boolean {
    return this.#pool.queueSize + this.#waiting >= limits.readerQueueMax
  }

  exportPage(task: ExportPageTask): Promise<ExportPage> {
    return this.#read(task, 'exportPage')
  }

  sealEnd(task: { shard: number; agentNo: number; seq: number }): Promise<number> {
    return this.#read(task, 'sealEnd')
  }

  importCheck(task: ImportCheckTask): Promise<ImportChecked> {
    return this.#run(task, 'importCheck')
  }

  treeRoot(task: TreeTask): Promise<string> {
    return this.#read(task, 'treeRootOf')
  }

  inclusion(task: InclusionTask): Promise<{ root: string; path: string[] }> {
    return this.#read(task, 'inclusionOf')
  }

  consistency(task: ConsistencyTask): Promise<ConsistencyFound> {
    return this.#read(task, 'consistencyOf')
  }

  /** The line that an export has for one record. */
  async recordLine(
    task: Omit<ExportPageTask, 'fromSeq' | 'toSeq' | 'bytesMax'> & { seq: number },
  ): Promise<string> {
    const { seq, ...strand } = task
    const page = await this.exportPage({ ...strand, fromSeq: seq, toSeq: seq, bytesMax: 1 })
    return page.text.trimEnd()
  }

  /** A shard's thread has ended: no thread has its store open any more when this resolves, nor opens it until `resume`. */
  letGo(shard: number): Promise<void> {
    if (!this.#away.has(shard)) this.#away.set(shard, new Set())
    const before = this.#pool
    this.#pool = startPool(this.#dataDir)
    // Threads of several shards can end at once, and those that another one ended may still be at it.
    this.#ended = Promise.all([this.#ended, before.destroy()]).then(() => undefined)
    return this.#ended
  }

  /** A shard serves again. */
  resume(shard: number): void {
    const waiting = this.#away.get(shard)
    this.#away.delete(shard)
    for (const go of waiting ?? []) go()
  }

  async close(): Promise<void> {
    this.#closing = true
    await this.#ended
    await this.#pool.destroy()
  }

  /** @throws Error when the shard does not serve and does not come back soon */
  #read<Found>(task: ShardTask, name: string): Promise<Found> {
    return this.#run(task, name, task.shard)
  }

  async #run<Found>(task: ShardTask | ImportCheckTask, name: string, shard?: number): Promise<Found> {
    for (;;) {
      // Looked at again behind each wait, so that nothing comes between the look and the task.
      if (shard !== undefined && this.#away.has(shard)) {
        await this.#untilServing(shard)
        continue
      }
      const pool = this.#pool
      try {
        const found: Found = await pool.run(task, { name })
        return found
      } catch (error) {
        // Its threads were ended for the sake of another shard.
        if (pool === this.#pool || this.#closing) throw error
      }
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
      }, this.#waitMs)
      waiting.add(go)
    })
    this.#waiting--
    if (!serves) throw new Error(`Shard ${shard} does not serve`)
  }
}

function startPool(dataDir: string): Piscina {
  const workerData: ReaderSettings = { dataDir }
  const pool = new Piscina({
    filename: fileURLToPath(new URL('../../workers/reader.js', import.meta.url)),
    minThreads: 0,
    maxThreads: limits.readerThreadsMax,
    maxQueue: limits.readerQueueMax,
    idleTimeout: limits.readerIdleMs,
    niceIncrement: 10,
    workerData,
  })
  // Told of answers that come when their thread has been told to end, and of threads that end while they do nothing. Both
  // leave nothing undone, and without a listener they would end the process.
  pool.on('error', () => {})
  return pool
}
