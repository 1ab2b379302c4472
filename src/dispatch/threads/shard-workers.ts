import { Worker } from 'node:worker_threads'
import { workerEntry } from '../../base/worker-entry.js'
import { limits } from '../../base/limits/limits.js'
import { endShard, type ShardWorkerData } from '../../protocol/shard-data.js'

const entry = workerEntry('shard-thread')

/**
 * Creates the threads of shards. A node of a cluster keeps spare threads that are already running, because
 * the start of a thread takes most of the time in which a moving shard is not served.
 */
export class ShardWorkers {
  readonly #spares = new Set<Worker>()
  #isClosed = false

  /** Returns a thread for a shard, a spare one if there is any. */
  start(data: ShardWorkerData): Worker {
    const { settings, channels } = data
    const transferList = channels === undefined ? [] : [channels.log.port, channels.checkpoints.port]
    const [spare] = this.#spares
    if (spare === undefined)
      return new Worker(entry, { workerData: data, name: `shard-${settings.shard}`, transferList })
    this.#spares.delete(spare)
    spare.removeAllListeners('error')
    spare.ref()
    spare.postMessage(data, transferList)
    return spare
  }

  /** Starts spare threads, up to the limit. */
  keepSpares(): void {
    while (!this.#isClosed && this.#spares.size < limits.clusterSpareThreads) {
      const spare = new Worker(entry, { name: 'shard' })
      spare.unref()
      this.#spares.add(spare)
      // `start` then creates another thread and reports the error.
      spare.once('error', () => {})
      spare.once('exit', () => this.#spares.delete(spare))
    }
  }

  /** Ends the spare threads. Resolves when they have ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(
      [...this.#spares].map((spare) => {
        const ended = new Promise<void>((resolve) => spare.once('exit', () => resolve()))
        spare.postMessage(endShard)
        return ended
      }),
    )
  }
}
