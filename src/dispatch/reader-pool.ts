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
  readonly #pool: Piscina

  constructor(dataDir: string) {
    const workerData: ReaderSettings = { dataDir }
    this.#pool = new Piscina({
      filename: fileURLToPath(new URL('../../workers/reader.js', import.meta.url)),
      minThreads: 0,
      maxThreads: limits.readerThreadsMax,
      maxQueue: limits.readerQueueMax,
      idleTimeout: limits.readerIdleMs,
      niceIncrement: 10,
      workerData,
    })
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

  async close(): Promise<void> {
    await this.#pool.destroy()
  }
}
