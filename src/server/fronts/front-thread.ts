import { MessageChannel, Worker } from 'node:worker_threads'
import { workerEntry } from '../../base/worker-entry.js'
import { limits } from '../../base/limits/limits.js'
import { Calls, type Handlers } from '../../dispatch/calls.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import { Watchdog } from '../../dispatch/pools/watchdog.js'
import { Heartbeat } from '../../protocol/heartbeat.js'
import type { FrontCalls, FrontWorkerData, MainCalls } from '../calls/front-messages.js'

/** The worker data of a front thread, without the parts that the main thread adds. */
export type FrontStart = Omit<FrontWorkerData, 'kind' | 'heartbeat'>

/** Receives the failure of a front thread. */
export interface FrontThreadListener {
  /** The thread cannot continue, or has ended unexpectedly. */
  failed(front: number, error: Error): void
}

/** The main thread's handle of a front thread. */
export class FrontThread {
  readonly front: number
  readonly #listener: FrontThreadListener
  readonly #calls: Calls<MainCalls, FrontCalls>
  readonly #heartbeat = new Heartbeat()
  readonly #watchdog = new Watchdog(limits.shardCheckMs)
  readonly #ended: Promise<void>
  #closing = false
  /** How long the thread has not sent a heartbeat, milliseconds. */
  silentMs = 0

  /** Starts the thread. @param handlers answers its calls, which may call it */
  constructor(
    start: FrontStart,
    handlers: (front: () => FrontThread) => Handlers<MainCalls>,
    listener: FrontThreadListener,
  ) {
    this.front = start.front
    this.#listener = listener
    const workerData: FrontWorkerData = { ...start, kind: 'front', heartbeat: this.#heartbeat.memory }
    const worker = new Worker(workerEntry('front'), {
      workerData,
      name: `front-${start.front}`,
    })
    this.#calls = new Calls(
      (message, transfer) => worker.postMessage(message, transfer),
      handlers(() => this),
    )
    worker.on('message', (message: unknown) => this.#calls.receive(message))
    let failure: Error | undefined
    worker.on('error', (error) => (failure = error))
    this.#ended = new Promise((resolve) => {
      worker.once('exit', (code) => {
        const error = failure ?? new Error(`The thread of front ${start.front} ended with exit code ${code}`)
        this.#calls.end(error)
        this.failed(error)
        resolve()
      })
    })
  }

  /** Reports a failure of the thread, unless it is closing. */
  failed(error: Error): void {
    if (!this.#closing) this.#listener.failed(this.front, error)
  }

  get call(): Calls<MainCalls, FrontCalls>['call'] {
    return this.#calls.call
  }

  /**
   * Joins the front to a shard. Resolves after the front has loaded the shard's state.
   * @returns false if the shard has no thread now
   */
  async join(shard: number, threads: ShardThreads): Promise<boolean> {
    const { port1, port2 } = new MessageChannel()
    const joined = threads.join(shard, this.front, port1)
    if (joined === undefined) {
      port1.close()
      return false
    }
    const { memory, term } = joined
    await this.call('join', { shard, port: port2, memory: memory.memory, term }, [port2])
    return true
  }

  /** Checks the heartbeat of the thread. @returns milliseconds since the last one */
  look(nowMs: number): number {
    this.silentMs = this.#watchdog.look({ nowMs, waiting: true, steps: this.#heartbeat.count })
    return this.silentMs
  }

  /**
   * Closes the connections of the front and ends its thread. The thread ends itself: terminating a thread
   * with open uWebSockets.js connections ends the whole process.
   */
  async close(): Promise<void> {
    this.#closing = true
    // A thread that ends during the call has ended, too.
    await this.call('close', undefined).catch(() => undefined)
    await this.#ended
  }
}
