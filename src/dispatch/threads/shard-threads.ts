import { backoffMs } from '../../base/backoff.js'
import type { MessagePort } from 'node:worker_threads'
import { assert } from '../../base/assert.js'
import { steadyClock } from '../../base/clock.js'
import { hasLostLog, isFenced, isHeld, lostLogMessage } from '../../protocol/fenced.js'
import { limits } from '../../base/limits/limits.js'
import type { ShardSettings } from '../../protocol/shard-data.js'
import type { ShardFigures } from '../../protocol/shard-figures.js'
import type { ShardMemory } from '../../protocol/shard-memory.js'
import { type FrontListener, Shards } from '../links/shards.js'
import { type ClusterAccess, ShardPort } from './shard-port.js'
import { ShardWorkers } from './shard-workers.js'

/** Receives the reports of the shards in the main thread. */
export interface ShardsListener extends FrontListener {
  /** A shard has a new thread, to which the other fronts must connect. */
  replaced(shard: number): void
  /** A shard serves the main thread again. */
  resumed(shard: number): void
  /**
   * A thread ended unexpectedly. It is restarted when the promise resolves: then no thread has its store
   * open.
   */
  died(shard: number, error: Error): Promise<void>
  /** A thread hangs and is being ended; `died` follows. */
  hung(shard: number): void
  /**
   * Only a new process helps: a hung thread cannot be ended or hangs again, or memory is corrupted. Called
   * once.
   */
  lost(shard: number, reason: string): void
}

export interface ShardsOptions {
  /** Memory for records that were read by hash, bytes; 0 turns the cache off. */
  cacheBytesMax: number
  /** How long a thread with pending commands may make no progress, milliseconds; 0 turns the check off. */
  stallMaxMs: number
  /** Absent outside a cluster. */
  cluster?: ClusterAccess | undefined
}

export type ShardThreadFigures = ShardFigures & {
  depth: number
  silentMs: number
  deaths: number
  hangs: number
}

/** How often the thread of a shard has ended since the start. */
interface Ends {
  deaths: number
  hangs: number
  /** When it last hung, by the monotonic clock. */
  hungAtMs: number | undefined
}

/**
 * Starts the threads of all shards, and restarts threads that died or hung (docs/adr/0025-hung-threads.md).
 */
export class ShardThreads {
  /** The shards as the main thread calls them. */
  readonly shards: Shards
  readonly #ports: ShardPort[]
  readonly #workers = new ShardWorkers()
  /** Set at the start; no report comes earlier. */
  #listener: ShardsListener | undefined
  /** Numbers of the fronts beside the main thread. */
  readonly #fronts = new Set<number>()
  readonly #restartsAt: number[] = []
  readonly #ends: Ends[]
  readonly #stallMaxMs: number
  #checks: NodeJS.Timeout | undefined
  #lost = false
  /** A thread does not end after it was terminated. */
  #stuck = false
  #closing = false
  readonly #cluster: ClusterAccess | undefined

  constructor(settings: readonly ShardSettings[], { cacheBytesMax, stallMaxMs, cluster }: ShardsOptions) {
    this.#stallMaxMs = stallMaxMs
    this.#cluster = cluster
    this.#ends = settings.map(() => ({ deaths: 0, hangs: 0, hungAtMs: undefined }))
    this.shards = new Shards(settings.length, {
      cacheBytesMax,
      isOfNode: cluster !== undefined,
    })
    this.#ports = settings.map(
      (one, shard) =>
        new ShardPort({
          settings: one,
          workers: this.#workers,
          cluster,
          front: this.shards.linkOf(shard),
          died: (error) => this.#restart(one.shard, error),
        }),
    )
  }

  /**
   * Opens every store.
   * @throws Error when a store cannot be opened, or the main thread cannot catch up with a shard
   */
  async start(listener: ShardsListener): Promise<void> {
    this.begin(listener)
    const connections = await Promise.all(this.#ports.map((port) => port.start()))
    for (const [shard, connection] of connections.entries()) {
      let [isStarting, failure] = [true, '']
      await this.shards.linkOf(shard).join(connection, (reason) => {
        if (isStarting) failure ||= reason
        else this.lose(shard, reason)
      })
      isStarting = false
      if (failure !== '') throw new Error(`Shard ${shard} cannot be served: ${failure}`)
    }
  }

  /** Starts the checks of threads; opens no store yet. */
  begin(listener: ShardsListener): void {
    this.#listener = listener
    this.shards.follow(listener)
    if (this.#stallMaxMs > 0) this.#checks ??= setInterval(() => this.#check(), limits.shardCheckMs)
  }

  /**
   * Opens one store; resolves when its shard serves the main thread.
   * @throws Error when the store cannot be opened, or the shards are closing; `isHeld` if another node of the
   *   cluster owns the shard
   */
  async open(shard: number): Promise<void> {
    // A thread that loads LMDB while the process exits aborts the process.
    if (this.#closing) throw new Error('The shards are closing')
    const connection = await this.#portAt(shard).start([...this.#fronts])
    this.#listener?.replaced(shard)
    const link = this.shards.linkOf(shard)
    if (await link.join(connection, (reason) => this.lose(shard, reason))) this.#listener?.resumed(shard)
  }

  /** Starts spare threads, because this node may have to open a shard soon. */
  keepSpares(): void {
    this.#workers.keepSpares()
  }

  /**
   * Prepares a transfer of a shard to another node: the main thread sends nothing more to it, and no front
   * joins.
   */
  leaving(shard: number): void {
    this.#portAt(shard).leaving()
  }

  has(shard: number): boolean {
    return this.#portAt(shard).alive
  }

  serves(shard: number): boolean {
    return this.#portAt(shard).serving
  }

  /** Ends the thread of a shard so that another node can open it. Every front was notified before. */
  async transfer(shard: number): Promise<void> {
    await this.#portAt(shard).close(this.#cluster?.lease.holds() === true)
  }

  /**
   * Connects one more front to a shard. No client gets an answer until this front has caught up.
   * @returns the memory that they share, and the term of the thread; undefined without a thread: join its
   * successor
   */
  join(shard: number, front: number, port: MessagePort): { memory: ShardMemory; term: number } | undefined {
    this.#fronts.add(front)
    return this.#ports[shard]?.join(front, port)
  }

  leave(front: number): void {
    this.#fronts.delete(front)
    for (const port of this.#ports) port.leave(front)
  }

  /** Figures, queue depth, stalls and ends of each shard, for metrics. */
  figures(): ShardThreadFigures[] {
    return this.#ports.map((port, shard) => {
      const { deaths = 0, hangs = 0 } = this.#ends[shard] ?? {}
      return { ...port.figures, depth: port.depth, silentMs: port.silentMs, deaths, hangs }
    })
  }

  /** Whether a thread cannot be ended. */
  get isStuck(): boolean {
    return this.#stuck
  }

  /** Whether the shards are closing, or the process ends. */
  get isClosing(): boolean {
    return this.#closing
  }

  /** Ends all threads. A node that holds its lease releases its shards for other nodes. */
  async close(): Promise<void> {
    this.#closing = true
    const transfers = this.#cluster?.lease.holds() === true
    await Promise.all([...this.#ports.map((port) => port.close(transfers)), this.#workers.close()])
    clearInterval(this.#checks)
  }

  /** Makes every thread exit immediately, before the process ends. Never resolves if a thread is stuck. */
  async abandon(): Promise<void> {
    this.#closing = true
    clearInterval(this.#checks)
    await Promise.all([
      ...this.#ports.map((port) => port.abandon()),
      this.#cluster?.abandon(),
      this.#workers.close(),
    ])
  }

  /** Reports that only a new process helps. Only the first reason is reported. */
  lose(shard: number, reason: string): void {
    if (this.#lost) return
    this.#lost = true
    this.#listener?.lost(shard, reason)
  }

  /** Checks that every thread with work makes progress. */
  #check(): void {
    const nowMs = steadyClock()
    for (const [shard, port] of this.#ports.entries()) {
      const verdict = port.check(nowMs, this.#stallMaxMs)
      if (verdict === 'hung') this.#hung(shard, nowMs)
      if (verdict !== 'stuck') continue
      this.#stuck = true
      this.lose(shard, 'its thread hangs and cannot be ended')
    }
  }

  #hung(shard: number, nowMs: number): void {
    const ends = this.#ends[shard]
    assert(ends !== undefined, 'a shard has its ends counted')
    this.#listener?.hung(shard)
    ends.hangs++
    const { hungAtMs } = ends
    ends.hungAtMs = nowMs
    // A hung thread may hold a resource that its successor needs, such as a lock of LMDB.
    if (hungAtMs !== undefined && nowMs - hungAtMs < limits.shardHangWindowMs)
      this.lose(shard, 'its thread hangs again')
  }

  /** Restarts a thread that died, after a pause that grows with the deaths of the last minute. */
  #restart(shard: number, error: Error): void {
    if (this.#closing) return
    const ends = this.#ends[shard]
    if (ends !== undefined) ends.deaths++
    if (hasCorruptedMemory(error)) {
      this.lose(shard, `LMDB wrote past the end of its memory (${error.message})`)
      return
    }
    if (isFenced(error) || isHeld(error)) {
      this.lose(shard, 'another node of the cluster has taken it')
      return
    }
    if (hasLostLog(error)) {
      const what = error.message.slice(lostLogMessage.length)
      this.lose(shard, `the database of the cluster has lost what it had acknowledged${what}`)
      return
    }
    const released = this.#listener?.died(shard, error)
    // The wall clock can jump.
    const now = steadyClock()
    this.#restartsAt.push(now)
    while ((this.#restartsAt[0] ?? now) < now - limits.shardRestartWindowMs) this.#restartsAt.shift()
    const backoff = { firstMs: 20, maxMs: limits.shardRestartPauseMaxMs }
    const pauseMs = backoffMs(backoff, this.#restartsAt.length)
    setTimeout(() => void this.#startAgain(shard, released), pauseMs)
  }

  async #startAgain(shard: number, released: Promise<void> | undefined): Promise<void> {
    await released
    // If the shard was being transferred, the follower of its log finds the outcome.
    if (this.#closing || this.#portAt(shard).isLeaving) return
    try {
      await this.open(shard)
    } catch (error) {
      this.#restart(shard, error instanceof Error ? error : new Error(String(error)))
    }
  }

  #portAt(shard: number): ShardPort {
    const port = this.#ports[shard]
    assert(port !== undefined, 'each shard has a port')
    return port
  }
}

/** The error text of a failed write in lmdb 3.5.6 (mdb_page_flush in its mdb.c). */
const failedWriteText = /Attempting to write page at position .*/

/** LMDB formats the text in a buffer of 100 bytes, the last of which is NUL. */
const textBytesMax = 99

/**
 * Whether LMDB has written past the end of a buffer while it formatted an error text, which may contain long
 * uninitialised numbers. The memory of this process may be corrupted.
 */
export function hasCorruptedMemory({ message }: Error): boolean {
  const [text = ''] = failedWriteText.exec(message) ?? []
  return text.length > textBytesMax
}
