import { Worker } from 'node:worker_threads'
import { workerEntry } from '../../base/worker-entry.js'
import { limits } from '../../base/limits/limits.js'
import type { SinkFigures, SinkOrder, SinkSettings } from '../../protocol/sink-messages.js'

/** Runs the thread of the PostgreSQL sink, and restarts it after a pause when it ends unexpectedly. */
export class SinkThread {
  readonly #settings: Omit<SinkSettings, 'paused'>
  readonly #paused = new Set<number>()
  readonly #died: (error: Error) => void
  #worker: Worker | undefined
  #restart: NodeJS.Timeout | undefined
  #figures: SinkFigures = {
    connected: false,
    lagRecords: 0,
    lagSecs: 0,
    rows: 0,
    deadLetters: 0,
    failures: 0,
  }
  #running = false
  #stopping = false

  constructor(settings: Omit<SinkSettings, 'paused'>, died: (error: Error) => void) {
    this.#settings = settings
    this.#died = died
  }

  /** Starts the thread. The stores must be open already, because the sink needs their tables. */
  start(): void {
    this.#worker = this.#startThread()
  }

  get figures(): SinkFigures {
    return this.#figures
  }

  /** Ends the thread, after a short time for the current batch. */
  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#restart)
    const worker = this.#worker
    if (worker === undefined || !this.#running) return
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    this.#send({ kind: 'stop' })
    await ended
  }

  /** Makes the sink close the store of a shard whose thread has ended, until `resume`. */
  pause(shard: number): void {
    this.#paused.add(shard)
    this.#send({ kind: 'pause', shard })
  }

  /** A shard serves again. */
  resume(shard: number): void {
    this.#paused.delete(shard)
    this.#send({ kind: 'resume', shard })
  }

  #send(order: SinkOrder): void {
    this.#worker?.postMessage(order)
  }

  #startThread(): Worker {
    const worker = new Worker(workerEntry('sink'), {
      workerData: { ...this.#settings, paused: [...this.#paused] },
      name: 'sink',
    })
    this.#running = true
    worker.on('message', (figures: SinkFigures) => (this.#figures = figures))
    worker.on('error', (error) => this.#died(error))
    worker.on('exit', () => {
      this.#running = false
      this.#figures = { ...this.#figures, connected: false }
      if (!this.#stopping) this.#startLater()
    })
    return worker
  }

  #startLater(): void {
    this.#restart = setTimeout(() => {
      try {
        this.#worker = this.#startThread()
      } catch (error) {
        // The constructor throws when no thread can be started.
        this.#died(error instanceof Error ? error : new Error(String(error)))
        this.#startLater()
      }
    }, limits.sinkRetryMaxMs)
  }
}
