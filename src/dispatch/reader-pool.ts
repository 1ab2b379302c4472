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

/** The pool of niced threads for long reads. Its queue is bounded: past that a task is refused at once. */
export class ReaderPool {
  readonly #dataDir: string
  #pool: Piscina

  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#pool = startPool(dataDir)
  }

  /** True when another task would be refused. */
  get full(): boolean {
    return this.#pool.queueSize >= limits.readerQueueMax
  }

  exportPage(task: ExportPageTask): Promise<ExportPage> {
    return this.#pool.run(task, { name: 'exportPage' })
  }

  sealEnd(task: { shard: number; agentNo: number; seq: number }): Promise<number> {
    return this.#pool.run(task, { name: 'sealEnd' })
  }

  importCheck(task: ImportCheckTask): Promise<ImportChecked> {
    return this.#pool.run(task, { name: 'importCheck' })
  }

  treeRoot(task: TreeTask): Promise<string> {
    return this.#pool.run(task, { name: 'treeRootOf' })
  }

  inclusion(task: InclusionTask): Promise<{ root: string; path: string[] }> {
    return this.#pool.run(task, { name: 'inclusionOf' })
  }

  consistency(task: ConsistencyTask): Promise<ConsistencyFound> {
    return this.#pool.run(task, { name: 'consistencyOf' })
  }

  /** The line that an export has for one record. */
  async recordLine(
    task: Omit<ExportPageTask, 'fromSeq' | 'toSeq' | 'bytesMax'> & { seq: number },
  ): Promise<string> {
    const { seq, ...strand } = task
    const page = await this.exportPage({ ...strand, fromSeq: seq, toSeq: seq, bytesMax: 1 })
    return page.text.trimEnd()
  }

  /**
   * Ends the threads, and with them what they read; later tasks have new ones. LMDB has one environment of a store in a
   * process: one that a commit failed in takes no writes until all have let go of it.
   */
  async letGo(): Promise<void> {
    const before = this.#pool
    this.#pool = startPool(this.#dataDir)
    await before.destroy()
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }
}

function startPool(dataDir: string): Piscina {
  const workerData: ReaderSettings = { dataDir }
  return new Piscina({
    filename: fileURLToPath(new URL('../../workers/reader.js', import.meta.url)),
    minThreads: 0,
    maxThreads: limits.readerThreadsMax,
    maxQueue: limits.readerQueueMax,
    idleTimeout: limits.readerIdleMs,
    niceIncrement: 10,
    workerData,
  })
}
