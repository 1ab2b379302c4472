import { MessageChannel, Worker } from 'node:worker_threads'
import { workerEntry } from '../../base/worker-entry.js'
import {
  endLog,
  noClusterFigures,
  type ClusterLines,
  type ClusterLogFigures,
  type ClusterLogSettings,
  type ShardLine,
} from '../../protocol/cluster-log-messages.js'

/** The thread of the cluster's log, and the lines of shards to it. */
export class ClusterLogThread {
  readonly #worker: Worker
  #figures: ClusterLogFigures = noClusterFigures
  readonly #ended: Promise<void>
  #ending = false
  /** Whether the process ends, for whoever waits for an answer. */
  readonly #ends = new Int32Array(new SharedArrayBuffer(4))

  readonly #knownPath: ((shard: number) => string) | undefined

  /**
   * @param died called when it ends by itself: no shard can go on then
   * @param knownPath the file of a shard that says what this node knows to be durable of its log
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
        if (!this.#ending) died(failure ?? new Error(`The thread of the cluster’s log ended with ${code}`))
        resolve()
      })
    })
  }

  /** What it has done since its start. */
  get figures(): ClusterLogFigures {
    return this.#figures
  }

  /** New lines of a shard, whose other ends are the thread's. */
  linesOf(shard: number, node: Pick<ClusterLines, 'cluster' | 'writer'>): ClusterLines {
    return { ...node, log: this.lineOf(shard), checkpoints: this.lineOf(shard) }
  }

  lineOf(shard: number): ShardLine {
    const { port1, port2 } = new MessageChannel()
    const known = this.#knownPath?.(shard)
    const line = { shard, answers: new SharedArrayBuffer(4), ends: this.#ends.buffer, known }
    this.#worker.postMessage({ ...line, port: port2 }, [port2])
    return { ...line, port: port1 }
  }

  /** The process ends: nobody waits for the database any longer. */
  giveUp(): void {
    Atomics.store(this.#ends, 0, 1)
  }

  /** Has it end, once the shards have closed their lines or given up; while it begins, once it has begun. */
  async close(): Promise<void> {
    this.#ending = true
    this.#worker.postMessage(endLog)
    await this.#ended
  }
}
