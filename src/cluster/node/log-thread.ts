import { MessageChannel, Worker } from 'node:worker_threads'
import { workerEntry } from '../../base/worker-entry.js'
import {
  endLog,
  noClusterFigures,
  type ClusterChannels,
  type ClusterLogFigures,
  type ClusterLogSettings,
  type LogChannel,
} from '../../protocol/cluster-log-messages.js'

/** The thread of the cluster's log, and the channels of shards to it. */
export class ClusterLogThread {
  readonly #worker: Worker
  #figures: ClusterLogFigures = noClusterFigures
  readonly #ended: Promise<void>
  #ending = false
  /** Set when the process ends, for threads that wait for an answer. */
  readonly #aborted = new Int32Array(new SharedArrayBuffer(4))

  readonly #knownPath: ((shard: number) => string) | undefined

  /**
   * @param died called when the thread ends unexpectedly; then no shard can continue
   * @param knownPath the file that records the durable end of a shard's log
   */
  constructor(
    settings: ClusterLogSettings,
    died: (error: Error) => void,
    knownPath?: (shard: number) => string,
  ) {
    this.#knownPath = knownPath
    this.#worker = new Worker(workerEntry('cluster-log'), {
      workerData: settings,
      name: 'cluster-log',
    })
    let failure: Error | undefined
    this.#worker.on('message', (figures: ClusterLogFigures) => (this.#figures = figures))
    this.#worker.on('error', (error: Error) => (failure = error))
    this.#ended = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        if (!this.#ending)
          died(failure ?? new Error(`The thread of the cluster’s log ended with exit code ${code}`))
        resolve()
      })
    })
  }

  /** Counters since the start of the thread. */
  get figures(): ClusterLogFigures {
    return this.#figures
  }

  /** Opens new channels of a shard to the thread. */
  channelsOf(shard: number, node: Omit<ClusterChannels, 'log' | 'checkpoints'>): ClusterChannels {
    return { ...node, log: this.channelOf(shard), checkpoints: this.channelOf(shard) }
  }

  channelOf(shard: number): LogChannel {
    const { port1, port2 } = new MessageChannel()
    const known = this.#knownPath?.(shard)
    const shared = {
      shard,
      answers: new SharedArrayBuffer(4),
      ends: this.#aborted.buffer,
      ...(known !== undefined && { known }),
    }
    this.#worker.postMessage({ ...shared, port: port2 }, [port2])
    return { ...shared, port: port1 }
  }

  /** Ends all waits for the database, because the process ends. */
  abort(): void {
    Atomics.store(this.#aborted, 0, 1)
  }

  /**
   * Ends the thread, after the shards have closed their channels or were aborted; if it is still starting,
   * after its start.
   */
  async close(): Promise<void> {
    this.#ending = true
    this.#worker.postMessage(endLog)
    await this.#ended
  }
}
