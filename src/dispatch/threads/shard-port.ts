import type { MessagePort, Worker } from 'node:worker_threads'
import { assert } from '../../base/assert.js'
import type { ClusterChannels } from '../../protocol/cluster-log-messages.js'
import { Heartbeat } from '../../protocol/heartbeat.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { ShardSettings } from '../../protocol/shard-data.js'
import {
  closeShard,
  endShard,
  transferShard,
  isShardReady,
  type FrontJoins,
} from '../../protocol/shard-data.js'
import { noFigures, type ShardFigures } from '../../protocol/shard-figures.js'
import { ShardMemory } from '../../protocol/shard-memory.js'
import type { ShardConnection } from '../links/shard-connection.js'
import type { ShardLink } from '../links/shard-link.js'
import type { ShardWorkers } from './shard-workers.js'
import { ThreadWatch, type ThreadHealth } from './thread-watch.js'

/** The front number of the main thread. */
export const mainFront = 0

/** Makes the channels of a shard to the log of its cluster. */
export type ChannelsOf = (shard: number) => ClusterChannels

export interface ShardPortParts {
  settings: ShardSettings
  workers: ShardWorkers
  cluster: ClusterAccess | undefined
  front: ShardLink
  /** Called when the thread ended unexpectedly, after its last frames were delivered. */
  died(error: Error): void
}

/** The access of a node's shards to their cluster. */
export interface ClusterAccess {
  channelsOf: ChannelsOf
  lease: LeaseMemory
  /**
   * Ends the follower thread and all waits for the database. Resolves when that thread has closed its stores.
   */
  abandon(): Promise<void>
}

/** A thread whose store is open. */
interface Running {
  worker: Worker
  connection: ShardConnection
}

/** Starts and ends the thread of one shard, and connects the main thread to it as the first front. */
export class ShardPort {
  readonly #parts: ShardPortParts
  #running: Running | undefined
  /** Resolves when the current or last start has ended. */
  #starting: Promise<void> = Promise.resolve()
  /** Resolves when the last thread has ended. */
  #ended: Promise<void> = Promise.resolve()
  /** The thread from its start to its end, and its watchdog. */
  #worker: Worker | undefined
  #watch: ThreadWatch | undefined
  /** The memory of a thread that has not opened its store yet. */
  #nextMemory: ShardMemory | undefined
  /** The memory of an ended thread while its last frames are delivered. */
  #endingMemory: ShardMemory | undefined
  #closing = false
  /** True before a transfer of the shard to another node: no front joins any more. */
  isLeaving = false
  /** Agents of the last thread; a new thread counts from 0. */
  #agents = 0

  constructor(parts: ShardPortParts) {
    this.#parts = parts
  }

  /** Whether there is a thread; it may not serve yet. */
  get alive(): boolean {
    return this.#running !== undefined
  }

  /** Whether it serves the main thread, which may already be connected to another node's thread. */
  get serving(): boolean {
    const { front } = this.#parts
    return this.#running !== undefined && front.isAt(this.#running.connection) && front.serving
  }

  get figures(): ShardFigures {
    return this.#running?.connection.memory.figures ?? { ...noFigures(), agents: this.#agents }
  }

  get depth(): number {
    return this.#running?.connection.memory.depth ?? 0
  }

  /** Milliseconds without progress of the thread while commands wait for it. */
  get silentMs(): number {
    return this.#watch?.silentMs ?? 0
  }

  /**
   * Starts the thread and returns the connection of the main thread once the store is open.
   * @param fronts numbers of the fronts that must serve before any client gets an answer
   * @throws Error when the store cannot be opened
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
    for (const one of fronts) memory.startCatchUp(one)
    // A front that leaves before the thread is ready must not be waited for.
    this.#nextMemory = memory
    const channels = cluster?.channelsOf(settings.shard)
    const worker = workers.start({
      settings,
      heartbeat: heartbeat.memory,
      shared: memory.memory,
      ...(channels !== undefined && { channels: channels }),
    })
    const watch = new ThreadWatch(worker, heartbeat)
    this.#worker = worker
    this.#watch = watch
    this.#ended = new Promise((resolve) => worker.once('exit', () => resolve()))
    worker.once('exit', () => (this.#worker = this.#watch = undefined))
    let connection: ShardConnection | undefined
    // One listener for all messages, because Node stops delivering when the last listener is removed.
    const ready = await new Promise<ShardConnection>((resolve, reject) => {
      worker.on('message', (message: unknown) => {
        if (message instanceof ArrayBuffer) {
          assert(connection !== undefined, 'the first message of a shard thread is that it is ready')
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
    // `exit` comes after the last frame of the thread, `error` may come earlier. Committed writes are still
    // answered.
    worker.on('exit', (code) => {
      assert(this.#running?.worker === worker, 'a thread has no successor before it has ended')
      const reason = watch.ending ? 'hung and was ended' : `ended with ${code}`
      this.#agents = this.figures.agents
      this.#running = undefined
      this.#endingMemory = memory
      // The shard may be opened again before the last frames are delivered, so read this now.
      const isUnexpected = !this.#closing
      front.end(ready)
      void front.ended.then(() => {
        if (this.#endingMemory === memory) this.#endingMemory = undefined
        if (isUnexpected) died(failure ?? new Error(`The thread of shard ${settings.shard} ${reason}`))
      })
    })
    this.#running = { worker, connection: ready }
    this.#nextMemory = undefined
    watch.opened()
    return ready
  }

  /**
   * Connects one more front to the thread.
   * @returns the memory that they share, and the term of the thread; undefined without a thread
   */
  join(front: number, port: MessagePort): { memory: ShardMemory; term: number } | undefined {
    if (this.#running === undefined || this.isLeaving) return undefined
    const { worker, connection } = this.#running
    const { memory, term } = connection
    memory.startCatchUp(front)
    const joins: FrontJoins = { kind: 'front', front, port }
    worker.postMessage(joins, [port])
    return { memory, term }
  }

  /** Prepares a transfer of the shard to another node: no front joins any more. */
  leaving(): void {
    this.isLeaving = true
    this.#parts.front.leaving()
  }

  leave(front: number): void {
    this.#running?.connection.memory.remove(front)
    this.#nextMemory?.remove(front)
    this.#endingMemory?.remove(front)
  }

  /** Checks the thread and ends it if it hangs. Callers and the listener are notified as when it dies. */
  check(nowMs: number, stallMaxMs: number): ThreadHealth {
    // Closing a store may take long and has the time limit of the stop.
    const waiting = this.depth > 0
    return this.#watch?.check(nowMs, { waiting, stallMaxMs }) ?? 'well'
  }

  /**
   * Makes the thread exit immediately, even during its start; resolves when it has exited. The thread must
   * exit by itself: terminating it during a call of LMDB may crash the process.
   */
  async abandon(): Promise<void> {
    this.#closing = true
    this.#worker?.postMessage(endShard)
    await this.#ended
  }

  /**
   * Finishes commands in flight, closes the store and ends the thread, even during its start.
   * @param transfers whether to record in the cluster log that another node may take the shard
   */
  async close(transfers: boolean): Promise<void> {
    this.#closing = true
    await this.#starting
    this.#parts.front.flush()
    this.#running?.worker.postMessage(transfers ? transferShard : closeShard)
    await this.#ended
  }
}
