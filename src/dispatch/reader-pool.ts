import { setTimeout as delay } from 'node:timers/promises'
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
 * The pool of niced threads for long reads. Its queue is bounded; who asks looks at `full` before.
 *
 * LMDB has one environment of a store in a process: one that a commit failed in takes no writes until all threads have
 * let go of it (docs/adr/0024-damage.md). So the threads are ended when a shard's thread has ended, and others go on with
 * what waits. That shard's store is not opened until it serves again; what is asked of it waits for that a while.
 *
 * Tasks wait here and not in Piscina, which can end its threads only with what they are at: a native call that comes back
 * to a thread which is being ended may end the process. A task is one page, so its end is waited for, and only a thread
 * that does not come to it is broken off.
 */
export class ReaderPool {
  readonly #dataDir: string
  readonly #waitMs: number
  /** Shards that do not serve, each with the tasks that wait for it. */
  readonly #away = new Map<number, Set<() => void>>()
  #waiting = 0
  #threadsFree: number = limits.readerThreadsMax
  /** Tasks that wait for a thread, longest first. */
  readonly #queue: (() => void)[] = []
  /** Tasks under way, of the threads of now and of those before. */
  readonly #underWay = new Set<Promise<unknown>>()
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
    return this.#queue.length + this.#waiting >= limits.readerQueueMax
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
    this.#ended = Promise.all([this.#ended, this.#end(before)]).then(() => undefined)
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
    for (const next of this.#queue.splice(0)) next()
    await this.#ended
    await this.#end(this.#pool)
  }

  /** Ends threads when they are at no task, or have not come to the end of one. */
  async #end(pool: Piscina): Promise<void> {
    const abort = new AbortController()
    const late = delay(limits.readerEndMs, undefined, { signal: abort.signal }).catch(() => undefined)
    await Promise.race([Promise.allSettled(this.#underWay), late])
    abort.abort()
    await pool.destroy()
  }

  /** @throws Error when the shard does not serve and does not come back soon */
  #read<Found>(task: ShardTask, name: string): Promise<Found> {
    return this.#run(task, name, task.shard)
  }

  async #run<Found>(task: ShardTask | ImportCheckTask, name: string, shard?: number): Promise<Found> {
    for (;;) {
      await this.#untilThreadFree()
      // Nothing comes between this look and the task.
      if (shard !== undefined && this.#away.has(shard)) {
        this.#freeThread()
        await this.#untilServing(shard)
        continue
      }
      const pool = this.#pool
      const run: Promise<Found> = pool.run(task, { name })
      this.#underWay.add(run)
      try {
        return await run
      } catch (error) {
        // Its thread was broken off for the sake of another shard. Another one begins anew: a task changes nothing.
        if (pool === this.#pool || this.#closing) throw error
      } finally {
        this.#underWay.delete(run)
        this.#freeThread()
      }
    }
  }

  /** @throws Error when the pool is closed */
  async #untilThreadFree(): Promise<void> {
    if (this.#threadsFree > 0) this.#threadsFree--
    else if (!this.#closing) await new Promise<void>((resolve) => this.#queue.push(resolve))
    if (this.#closing) throw new Error('The readers have ended')
  }

  /** Hands a thread on to whoever waits longest. */
  #freeThread(): void {
    const next = this.#queue.shift()
    if (next === undefined) this.#threadsFree++
    else next()
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
