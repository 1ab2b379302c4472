import type { MessagePort, Worker } from 'node:worker_threads'
import { assert } from '../../base/assert.js'
import type { ClusterLines } from '../../protocol/cluster-log-messages.js'
import { Heartbeat } from '../../protocol/heartbeat.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { ShardSettings } from '../../protocol/messages.js'
import {
  closeShard,
  endShard,
  handOverShard,
  isShardReady,
  type FrontJoins,
} from '../../protocol/shard-data.js'
import { noFigures, type ShardFigures } from '../../protocol/shard-figures.js'
import { ShardMemory } from '../../protocol/shard-memory.js'
import type { ShardConnection } from '../links/shard-connection.js'
import type { ShardLink } from '../links/shard-link.js'
import type { ShardWorkers } from './shard-workers.js'
import { ThreadWatch, type ThreadHealth } from './thread-watch.js'

/** The number of the front that the main thread is. */
export const mainFront = 0

/** Makes the lines of a shard to the log of its cluster. */
export type LinesOf = (shard: number) => ClusterLines

/** What a shard's thread is started with. */
export interface ShardPortParts {
  settings: ShardSettings
  workers: ShardWorkers
  /** Of a node of a cluster. */
  cluster: ClusterOwner | undefined
  /** The main thread's end of the shard. */
  front: ShardLink
  /** The thread ended unexpectedly, and what it had told is passed on. */
  died(error: Error): void
}

/** What makes the shards of a node its own. */
export interface ClusterOwner {
  linesOf: LinesOf
  lease: LeaseMemory
  /** Ends the thread that follows what other nodes own, and all waiting for the database. Resolves when it has no store open. */
  abandon(): Promise<void>
}

/** A thread of the shard that is open. */
interface Running {
  worker: Worker
  /** By which the main thread talks to it. */
  connection: ShardConnection
}

/** The thread of one shard: starts and ends it, and has the main thread talk to it as the first of the fronts. */
export class ShardPort {
  readonly #parts: ShardPortParts
  #running: Running | undefined
  /** Settles when the current start, or the last one, has ended. */
  #starting: Promise<void> = Promise.resolve()
  /** Resolves when the last thread has ended. */
  #ended: Promise<void> = Promise.resolve()
  /** The thread from its start to its end, and what watches it. */
  #worker: Worker | undefined
  #watch: ThreadWatch | undefined
  /** Memory of a thread which has not opened its store yet. */
  #nextMemory: ShardMemory | undefined
  /** That of a thread which has ended, while what it told last is passed on. */
  #endingMemory: ShardMemory | undefined
  #closing = false
  /** The shard is about to be handed over: nobody joins any more. */
  isLeaving = false
  /** Agents that the last thread had: a new one counts anew. */
  #agents = 0

  constructor(parts: ShardPortParts) {
    this.#parts = parts
  }

  /** Whether there is a thread, which may not serve yet. */
  get alive(): boolean {
    return this.#running !== undefined
  }

  /** Whether it serves the main thread, which may talk to that of another node by now. */
  get serving(): boolean {
    const { front } = this.#parts
    return this.#running !== undefined && front.isAt(this.#running.connection) && front.serving
  }

  get figures(): ShardFigures {
    return this.#running?.connection.memory.figures ?? { ...noFigures(), agents: this.#agents }
  }

  /** Commands that wait for it. */
  get depth(): number {
    return this.#running?.connection.memory.depth ?? 0
  }

  /** Milliseconds without progress of the thread while commands wait for it. */
  get silentMs(): number {
    return this.#watch?.silentMs ?? 0
  }

  /**
   * Starts the thread; returns the connection by which the main thread talks to it, when its store is open.
   * @param fronts numbers of those that are to learn of it: nobody is answered before they serve
   * @throws Error when it cannot be opened
   */
  start(fronts: readonly number[] = []): Promise<ShardConnection> {
    this.#closing = false
    this.isLeaving = false
    const starting = this.#start(fronts)
    this.#starting = starting.then(
      () => undefined,
      () => undefined,
    )
    return starting
  }

  async #start(fronts: readonly number[]): Promise<ShardConnection> {
    const { settings, cluster, workers, front, died } = this.#parts
    const heartbeat = new Heartbeat()
    const memory = new ShardMemory()
    memory.figures = { ...noFigures(), agents: this.#agents }
    for (const one of fronts) memory.learns(one)
    // A front may leave before the thread is there, and must not be waited for.
    this.#nextMemory = memory
    const lines = cluster?.linesOf(settings.shard)
    const worker = workers.start({
      settings,
      heartbeat: heartbeat.memory,
      shared: memory.memory,
      ...(lines !== undefined && { lines }),
    })
    const watch = new ThreadWatch(worker, heartbeat)
    this.#worker = worker
    this.#watch = watch
    this.#ended = new Promise((resolve) => worker.once('exit', () => resolve()))
    worker.once('exit', () => (this.#worker = this.#watch = undefined))
    let connection: ShardConnection | undefined
    // One listener for the first message and for all others: Node stops delivering when the last listener is removed.
    const ready = await new Promise<ShardConnection>((resolve, reject) => {
      worker.on('message', (message: unknown) => {
        if (message instanceof ArrayBuffer) {
          assert(connection !== undefined, 'a shard says that it is ready before all else')
          front.receive(connection, message)
        } else if (isShardReady(message)) {
          const post = (frame: ArrayBuffer) => worker.postMessage(frame, [frame])
          connection = { front: mainFront, term: message.term, memory, lease: cluster?.lease, post }
          resolve(connection)
        }
      })
      worker.once('error', reject)
      worker.once('exit', (code) => reject(new Error(`The thread ended with ${code} before it was ready`)))
    })
    let failure: Error | undefined
    worker.on('error', (error) => (failure = error))
    // `exit` comes after the last frame of the thread, `error` may come before: committed writes are still answered.
    worker.on('exit', (code) => {
      assert(this.#running?.worker === worker, 'a thread has no successor before it has ended')
      const how = watch.ending ? 'hung and was ended' : `ended with ${code}`
      this.#agents = this.figures.agents
      this.#running = undefined
      this.#endingMemory = memory
      // Until it has told all, the shard may have been opened again.
      const isWanted = !this.#closing
      front.end(ready)
      void front.ended.then(() => {
        if (this.#endingMemory === memory) this.#endingMemory = undefined
        if (isWanted) died(failure ?? new Error(`The thread of shard ${settings.shard} ${how}`))
      })
    })
    this.#running = { worker, connection: ready }
    this.#nextMemory = undefined
    watch.opened()
    return ready
  }

  /**
   * Has the thread talk to one more front.
   * @returns the memory that they share, and the term of the thread; undefined while there is none
   */
  join(front: number, port: MessagePort): { memory: ShardMemory; term: number } | undefined {
    if (this.#running === undefined || this.isLeaving) return undefined
    const { worker, connection } = this.#running
    const { memory, term } = connection
    memory.learns(front)
    const joins: FrontJoins = { kind: 'front', front, port }
    worker.postMessage(joins, [port])
    return { memory, term }
  }

  /** Another node is to have the shard: no front joins any more. */
  leaving(): void {
    this.isLeaving = true
    this.#parts.front.leaving()
  }

  /** A front has gone. */
  leave(front: number): void {
    this.#running?.connection.memory.leaves(front)
    this.#nextMemory?.leaves(front)
    this.#endingMemory?.leaves(front)
  }

  /** Checks the thread. One that hangs is ended; callers and listener are told in the same way as when it dies. */
  look(nowMs: number, silenceMaxMs: number): ThreadHealth {
    // Closing a store may take long, and has the time limit of the stop.
    const waiting = this.depth > 0
    return this.#watch?.look(nowMs, { waiting, silenceMaxMs }) ?? 'well'
  }

  /**
   * Has the thread end where it stands, even one that is only starting; resolves when it has. It has to do that itself: one that
   * is ended from outside in the midst of a call of LMDB may take the process along.
   */
  async abandon(): Promise<void> {
    this.#closing = true
    this.#worker?.postMessage(endShard)
    await this.#ended
  }

  /**
   * Lets commands in flight finish, closes the store and ends the thread, which may still be starting.
   * @param handsOver says in the log of the cluster, too, that another node may have the shard
   */
  async close(handsOver: boolean): Promise<void> {
    this.#closing = true
    await this.#starting
    this.#parts.front.flush()
    this.#running?.worker.postMessage(handsOver ? handOverShard : closeShard)
    await this.#ended
  }
}
