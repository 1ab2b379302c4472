import { Worker } from 'node:worker_threads'
import { workerEntry } from '../../base/worker-entry.js'
import { limits } from '../../base/limits/limits.js'
import { endShard, type ShardWorkerData } from '../../protocol/shard-data.js'

const entry = workerEntry('shard-thread')

/**
 * Makes the threads of shards. A node of a cluster has some that have begun and wait for a shard, since to begin takes most of
 * the time until a shard that moves is served again.
 */
export class ShardWorkers {
  readonly #spares = new Set<Worker>()
  #isOver = false

  /** A thread for a shard. */
  start(data: ShardWorkerData): Worker {
    const { settings, lines } = data
    const transferList = lines === undefined ? [] : [lines.log.port, lines.checkpoints.port]
    const [spare] = this.#spares
    if (spare === undefined)
      return new Worker(entry, { workerData: data, name: `shard-${settings.shard}`, transferList })
    this.#spares.delete(spare)
    spare.removeAllListeners('error')
    spare.ref()
    spare.postMessage(data, transferList)
    return spare
  }

  /** Has some threads begin which wait for a shard. */
  keepSpares(): void {
    while (!this.#isOver && this.#spares.size < limits.clusterSpareThreads) {
      const spare = new Worker(entry, { name: 'shard' })
      spare.unref()
      this.#spares.add(spare)
      // Whoever would have it makes one of its own then, and says what is wrong.
      spare.once('error', () => {})
      spare.once('exit', () => this.#spares.delete(spare))
    }
  }

  /** Has those end that wait, each once it has begun. Resolves when they have ended. */
  async close(): Promise<void> {
    this.#isOver = true
    await Promise.all(
      [...this.#spares].map((spare) => {
        const ended = new Promise<void>((resolve) => spare.once('exit', () => resolve()))
        spare.postMessage(endShard)
        return ended
      }),
    )
  }
}
