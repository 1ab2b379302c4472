import { Worker, type MessagePort } from 'node:worker_threads'
import { assert } from '../base/assert.js'
import type { Refusal } from '../base/errors.js'
import type { ClusterLines } from '../protocol/cluster-log-messages.js'
import { Heartbeat } from '../protocol/heartbeat.js'
import type { Command, Outcome, ShardSettings } from '../protocol/messages.js'
import { closeShard, handOverShard, type FrontJoins, type ShardWorkerData } from '../protocol/shard-data.js'
import { noFigures, type ShardFigures } from '../protocol/shard-figures.js'
import { ShardMemory } from '../protocol/shard-memory.js'
import { ShardLink, type LinkListener, type Receive } from './shard-link.js'
import { ThreadWatch, type Verdict } from './thread-watch.js'

/** The number of the front that the main thread is. */
export const mainFront = 0

/** Makes the lines of a shard to the log of its cluster. */
export type LinesOf = (shard: number) => ClusterLines

/** What a shard sends besides outcomes. */
export interface ShardListener extends LinkListener {
  /** The thread ended unexpectedly. */
  died(error: Error): void
}

/** The main thread's end of one shard worker: starts and ends its thread, and talks to it as the first of the fronts. */
export class ShardPort {
  readonly #settings: ShardSettings
  readonly #linesOf: LinesOf | undefined
  readonly #listener: ShardListener
  readonly #link: ShardLink
  #worker: Worker | undefined
  /** Settles when the current start, or the last one, has ended. */
  #starting: Promise<void> = Promise.resolve()
  /** Resolves when the last thread has ended. */
  #ended: Promise<void> = Promise.resolve()
  /** Watches the thread from its start to its end. */
  #watch: ThreadWatch | undefined
  #memory: ShardMemory | undefined
  /** That of a thread which has not opened its store yet. */
  #nextMemory: ShardMemory | undefined
  #closing = false
  /** Agents that the last thread had: a new one counts anew. */
  #agents = 0

  /** @param linesOf makes the lines to the log of a cluster, for each thread anew; absent where there is none */
  constructor(settings: ShardSettings, listener: ShardListener, linesOf?: LinesOf) {
    this.#linesOf = linesOf
    this.#settings = settings
    this.#listener = listener
    this.#link = new ShardLink(mainFront, listener)
  }

  /** Commands that wait for their outcome. */
  get depth(): number {
    return this.#link.depth
  }

  get serving(): boolean {
    return this.#link.serving
  }

  /** Whether there is a thread, which may not serve yet. */
  get alive(): boolean {
    return this.#worker !== undefined
  }

  get figures(): ShardFigures {
    return this.#memory?.figures ?? { ...noFigures(), agents: this.#agents }
  }

  /** Milliseconds without progress of the thread while commands wait for it. */
  get silentMs(): number {
    return this.#watch?.silentMs ?? 0
  }

  /**
   * Starts the thread; returns when its store is open.
   * @param fronts numbers of those that are to learn of it: nobody is answered before they serve
   * @throws Error when it cannot be opened
   */
  start(fronts: readonly number[] = []): Promise<void> {
    const starting = this.#start(fronts)
    this.#starting = starting.catch(() => undefined)
    return starting
  }

  async #start(fronts: readonly number[]): Promise<void> {
    const heartbeat = new Heartbeat()
    const memory = new ShardMemory()
    memory.figures = { ...noFigures(), agents: this.#agents }
    for (const front of fronts) memory.learns(front)
    // A front may leave before the thread is there, and must not be waited for.
    this.#nextMemory = memory
    const lines = this.#linesOf?.(this.#settings.shard)
    const workerData: ShardWorkerData = {
      settings: this.#settings,
      heartbeat: heartbeat.memory,
      shared: memory.memory,
      ...(lines !== undefined && { lines }),
    }
    const worker = new Worker(new URL('../../workers/shard-thread.js', import.meta.url), {
      workerData,
      name: `shard-${this.#settings.shard}`,
      ...(lines !== undefined && { transferList: [lines.log.port, lines.checkpoints.port] }),
    })
    const watch = new ThreadWatch(worker, heartbeat)
    this.#watch = watch
    this.#ended = new Promise((resolve) => worker.once('exit', () => resolve()))
    worker.once('exit', () => (this.#watch = undefined))
    // One listener for the first message and for all others: Node stops delivering when the last listener is removed.
    await new Promise<void>((resolve, reject) => {
      worker.on('message', (message: unknown) => {
        if (message instanceof ArrayBuffer) this.#link.receive(message)
        else resolve()
      })
      worker.once('error', reject)
      worker.once('exit', (code) => reject(new Error(`The thread ended with ${code} before it was ready`)))
    })
    let failure: Error | undefined
    worker.on('error', (error) => (failure = error))
    // `exit` comes after the last frame of the thread, `error` may come before: committed writes are still answered.
    worker.on('exit', (code) => {
      const how = watch.ending ? 'hung and was ended' : `ended with ${code}`
      this.#end(worker, failure ?? new Error(`The thread of shard ${this.#settings.shard} ${how}`))
    })
    this.#worker = worker
    this.#memory = memory
    this.#nextMemory = undefined
    watch.opened()
    this.#link.begin({ memory, post: (frame) => worker.postMessage(frame, [frame]) })
  }

  /** The main thread knows what the last thread has told: the new one serves. */
  serve(): void {
    this.#link.serve()
  }

  /** Has the thread talk to one more front. @returns the memory that they share; undefined while there is no thread */
  join(front: number, port: MessagePort): ShardMemory | undefined {
    if (this.#worker === undefined || this.#memory === undefined) return undefined
    this.#memory.learns(front)
    const joins: FrontJoins = { kind: 'front', front, port }
    this.#worker.postMessage(joins, [port])
    return this.#memory
  }

  /** A front has gone. */
  leave(front: number): void {
    this.#memory?.leaves(front)
    this.#nextMemory?.leaves(front)
  }

  /**
   * Sends a command with the others of this tick.
   * @returns a refusal, and nothing is sent, when the shard's queue is full or it is not serving
   */
  send(command: Command, receive: Receive): Refusal | undefined {
    return this.#link.send(command, receive)
  }

  /** Asks a thread that does not serve yet. */
  learn(command: Command): Promise<Outcome> {
    return this.#link.learn(command)
  }

  /** Checks the thread. One that hangs is ended; callers and listener are told in the same way as when it dies. */
  look(nowMs: number, silenceMaxMs: number): Verdict {
    // Closing a store may take long, and has the time limit of the stop.
    const waiting = this.depth > 0
    return this.#watch?.look(nowMs, { waiting, silenceMaxMs }) ?? 'well'
  }

  /** Ends the thread whatever it is doing; resolves when it has ended. */
  async abandon(): Promise<void> {
    this.#closing = true
    await this.#watch?.end()
  }

  /**
   * Lets commands in flight finish, closes the store and ends the thread, which may still be starting.
   * @param handsOver says in the log of the cluster, too, that another node may have the shard
   */
  async close(handsOver: boolean): Promise<void> {
    this.#closing = true
    await this.#starting
    this.#link.flush()
    this.#worker?.postMessage(handsOver ? handOverShard : closeShard)
    await this.#ended
  }

  #end(worker: Worker, error: Error): void {
    assert(this.#worker === worker, 'a thread has no successor before it has ended')
    this.#worker = undefined
    this.#link.end(() => {
      this.#agents = this.figures.agents
      this.#memory = undefined
      if (!this.#closing) this.#listener.died(error)
    })
  }
}
