import { MessageChannel, Worker } from 'node:worker_threads'
import { workerEntry } from '../../base/worker-entry.js'
import { limits } from '../../base/limits/limits.js'
import { Calls, type Handlers } from '../../dispatch/calls.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import { Watchdog } from '../../dispatch/pools/watchdog.js'
import { Heartbeat } from '../../protocol/heartbeat.js'
import type { FrontCalls, FrontGiven, MainCalls } from '../calls/front-messages.js'

/** What the thread of a front is started with, but for what its end in the main thread adds. */
export type FrontStart = Omit<FrontGiven, 'kind' | 'heartbeat'>

/** What is told of such a thread. */
export interface FrontThreadListener {
  /** It cannot go on, or ended by itself. */
  failed(front: number, error: Error): void
}

/** The main thread's end of the thread of one front. */
export class FrontThread {
  readonly front: number
  readonly #listener: FrontThreadListener
  readonly #calls: Calls<MainCalls, FrontCalls>
  readonly #heartbeat = new Heartbeat()
  readonly #watchdog = new Watchdog(limits.shardLookMs)
  readonly #ended: Promise<void>
  #closing = false
  /** How long it has shown no sign of life, milliseconds. */
  silentMs = 0

  /** Starts the thread. @param handlers answers its calls, which may call it */
  constructor(
    start: FrontStart,
    handlers: (front: () => FrontThread) => Handlers<MainCalls>,
    listener: FrontThreadListener,
  ) {
    this.front = start.front
    this.#listener = listener
    const workerData: FrontGiven = { ...start, kind: 'front', heartbeat: this.#heartbeat.memory }
    const worker = new Worker(workerEntry('front'), {
      workerData,
      name: `front-${start.front}`,
    })
    this.#calls = new Calls(
      (message, transfer) => worker.postMessage(message, transfer),
      handlers(() => this),
    )
    worker.on('message', (message: unknown) => this.#calls.take(message))
    let failure: Error | undefined
    worker.on('error', (error) => (failure = error))
    this.#ended = new Promise((resolve) => {
      worker.once('exit', (code) => {
        const error = failure ?? new Error(`The thread of front ${start.front} ended with ${code}`)
        this.#calls.end(error)
        this.failed(error)
        resolve()
      })
    })
  }

  /** It cannot go on, or has ended by itself. */
  failed(error: Error): void {
    if (!this.#closing) this.#listener.failed(this.front, error)
  }

  get call(): Calls<MainCalls, FrontCalls>['call'] {
    return this.#calls.call
  }

  /**
   * Has it talk to a shard. Resolves once it has learnt what it must know.
   * @returns false when the shard has no thread now
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

  /** Checks whether it shows signs of life. @returns milliseconds without one */
  look(nowMs: number): number {
    this.silentMs = this.#watchdog.look({ nowMs, waiting: true, steps: this.#heartbeat.count })
    return this.silentMs
  }

  /**
   * Closes its connections and ends it. It has to do that itself: where a thread that has connections of uWebSockets.js is
   * ended from outside, Node or the library ends the whole process.
   */
  async close(): Promise<void> {
    this.#closing = true
    // What ends in the middle of that has ended, too.
    await this.call('close', undefined).catch(() => undefined)
    await this.#ended
  }
}
