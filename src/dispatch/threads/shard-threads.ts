import type { MessagePort } from 'node:worker_threads'
import { assert } from '../../base/assert.js'
import { steadyClock } from '../../base/clock.js'
import { hasLostLog, isFenced, isHeld, lostLogMessage } from '../../protocol/fenced.js'
import { limits } from '../../base/limits/limits.js'
import type { ShardSettings } from '../../protocol/messages.js'
import type { ShardFigures } from '../../protocol/shard-figures.js'
import type { ShardMemory } from '../../protocol/shard-memory.js'
import { type FrontListener, Shards } from '../links/shards.js'
import { type ClusterOwner, ShardPort } from './shard-port.js'
import { ShardWorkers } from './shard-workers.js'

/** What the shards report to the main thread. */
export interface ShardsListener extends FrontListener {
  /** A shard has a new thread: the other fronts are to talk to it. */
  replaced(shard: number): void
  /** It serves the main thread. */
  resumed(shard: number): void
  /** The thread ended unexpectedly. Resolves when nobody else has its store open; then it is started again. */
  died(shard: number, error: Error): Promise<void>
  /** A thread hangs and is being ended; `died` follows when it has. */
  hung(shard: number): void
  /**
   * A thread that hangs cannot be ended, or hangs again, or memory is corrupt: only a new process helps. Called once.
   */
  lost(shard: number, reason: string): void
}

/** Options of the shards. */
export interface ShardsOptions {
  /** Memory for records that were read by hash, bytes; 0 is off. */
  cacheBytesMax: number
  /** How long a thread may make no progress while commands wait for it, milliseconds; 0 is off. */
  silenceMaxMs: number
  /** Of a node of a cluster. */
  cluster?: ClusterOwner | undefined
}

/** Figures of a shard, with what the main thread knows of its thread. */
export type ShardThreadFigures = ShardFigures & {
  depth: number
  silentMs: number
  deaths: number
  hangs: number
}

/** How often the thread of one shard has ended since the start. */
interface Ends {
  deaths: number
  hangs: number
  /** When it last hung, by the monotonic clock. */
  hungAtMs: number | undefined
}

/** The threads of all shards: starts them, and starts those again that died or hung (docs/adr/0025-hung-threads.md). */
export class ShardThreads {
  /** The shards, as the main thread asks them. */
  readonly shards: Shards
  readonly #ports: ShardPort[]
  readonly #workers = new ShardWorkers()
  /** Set at the start; nothing is reported before. */
  #listener: ShardsListener | undefined
  /** Numbers of the fronts beside the main thread. */
  readonly #fronts = new Set<number>()
  readonly #restartsAt: number[] = []
  readonly #ends: Ends[]
  readonly #silenceMaxMs: number
  #looks: NodeJS.Timeout | undefined
  #lost = false
  /** A thread does not end although it was told to. */
  #stuck = false
  #closing = false
  readonly #cluster: ClusterOwner | undefined

  constructor(settings: readonly ShardSettings[], { cacheBytesMax, silenceMaxMs, cluster }: ShardsOptions) {
    this.#silenceMaxMs = silenceMaxMs
    this.#cluster = cluster
    this.#ends = settings.map(() => ({ deaths: 0, hangs: 0, hungAtMs: undefined }))
    this.shards = new Shards(settings.length, {
      cacheBytesMax,
      isOfNode: cluster !== undefined,
      lose: (shard, reason) => this.lose(shard, reason),
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

  /** Opens every store. @throws Error when one cannot be opened, or does not say what the main thread must know */
  async start(listener: ShardsListener): Promise<void> {
    this.begin(listener)
    const connections = await Promise.all(this.#ports.map((port) => port.start()))
    for (const [shard, connection] of connections.entries()) {
      await this.shards.linkOf(shard).join(connection, (reason) => {
        throw new Error(`Shard ${shard} cannot be served: ${reason}`)
      })
    }
  }

  /** Opens none yet. */
  begin(listener: ShardsListener): void {
    this.#listener = listener
    this.shards.follow(listener)
    if (this.#silenceMaxMs > 0) this.#looks ??= setInterval(() => this.#look(), limits.shardLookMs)
  }

  /**
   * Opens one store; returns when its shard serves the main thread.
   * @throws Error when it cannot be opened; `isHeld` where another node of the cluster owns it
   */
  async open(shard: number): Promise<void> {
    const connection = await this.#portAt(shard).start([...this.#fronts])
    this.#listener?.replaced(shard)
    const link = this.shards.linkOf(shard)
    if (await link.join(connection, (reason) => this.lose(shard, reason))) this.#listener?.resumed(shard)
  }

  /** Has some threads begin already that wait for a shard, as this node may have to open one soon. */
  keepSpares(): void {
    this.#workers.keepSpares()
  }

  /** The main thread sends nothing more to a shard that another node is to have, and no further front does. */
  leaving(shard: number): void {
    this.#portAt(shard).leaving()
  }

  /** Whether this node has a thread of a shard. */
  has(shard: number): boolean {
    return this.#portAt(shard).alive
  }

  /** Whether that serves the main thread. */
  serves(shard: number): boolean {
    return this.#portAt(shard).serving
  }

  /** Ends the thread of a shard, for another node to have it. Every front knows already that it ends. */
  async handOver(shard: number): Promise<void> {
    await this.#portAt(shard).close(this.#cluster?.lease.holds() === true)
  }

  /**
   * Has a shard talk to one more front. Until the front has learnt what it must know, nobody is answered.
   * @returns the memory that they share, and the term of its thread; undefined while it has none, for whose successor it is to be
   * asked again
   */
  join(shard: number, front: number, port: MessagePort): { memory: ShardMemory; term: number } | undefined {
    this.#fronts.add(front)
    return this.#ports[shard]?.join(front, port)
  }

  /** A front has gone, with all that it kept: nobody waits for it. */
  leave(front: number): void {
    this.#fronts.delete(front)
    for (const port of this.#ports) port.leave(front)
  }

  /** Figures, queue depth, silence and ends of each shard, for metrics. */
  figures(): ShardThreadFigures[] {
    return this.#ports.map((port, shard) => {
      const { deaths = 0, hangs = 0 } = this.#ends[shard] ?? {}
      return { ...port.figures, depth: port.depth, silentMs: port.silentMs, deaths, hangs }
    })
  }

  /** Whether a thread does not end. */
  get isStuck(): boolean {
    return this.#stuck
  }

  /** Whether it closes, or the process ends. */
  get isClosing(): boolean {
    return this.#closing
  }

  /** A node that reaches the database of its cluster hands its shards over. */
  async close(): Promise<void> {
    this.#closing = true
    const handsOver = this.#cluster?.lease.holds() === true
    await Promise.all([...this.#ports.map((port) => port.close(handsOver)), this.#workers.close()])
    clearInterval(this.#looks)
  }

  /**
   * Has every thread end where it stands, before the process ends. Resolves when all have, which is never where one is stuck.
   */
  async abandon(): Promise<void> {
    this.#closing = true
    clearInterval(this.#looks)
    await Promise.all([
      ...this.#ports.map((port) => port.abandon()),
      this.#cluster?.abandon(),
      this.#workers.close(),
    ])
  }

  /** Reports that only a new process helps; only the first reason counts. */
  lose(shard: number, reason: string): void {
    if (this.#lost) return
    this.#lost = true
    this.#listener?.lost(shard, reason)
  }

  /** Checks whether every thread that has work makes progress. */
  #look(): void {
    const nowMs = steadyClock()
    for (const [shard, port] of this.#ports.entries()) {
      const verdict = port.look(nowMs, this.#silenceMaxMs)
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
    // A thread that hung may hold something that its successor waits for, such as a lock of LMDB.
    if (hungAtMs !== undefined && nowMs - hungAtMs < limits.shardHangWindowMs)
      this.lose(shard, 'its thread hangs again')
  }

  /** A thread that died is started again after a pause that grows with the deaths of the last minute. */
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
    // Not the time of day, which can jump.
    const now = steadyClock()
    this.#restartsAt.push(now)
    while ((this.#restartsAt[0] ?? now) < now - limits.shardRestartWindowMs) this.#restartsAt.shift()
    const pauseMs = Math.min(limits.shardRestartPauseMaxMs, 10 * 2 ** Math.min(this.#restartsAt.length, 12))
    setTimeout(() => void this.#startAgain(shard, released), pauseMs)
  }

  async #startAgain(shard: number, released: Promise<void> | undefined): Promise<void> {
    await released
    // Where it was to be handed over, whoever follows its log finds out what became of that.
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

/** The error text of LMDB for a failed write, as lmdb 3.5.6 makes it (mdb_page_flush in its mdb.c). */
const failedWrite = /Attempting to write page at position .*/

/** The text is made in a buffer of 100 bytes, the last of which is for NUL. */
const textBytesMax = 99

/**
 * Whether LMDB has written past the end of its memory while making an error text: some numbers in that text are
 * uninitialised, and can be long. The memory of this process may be corrupt after that.
 */
export function hasCorruptedMemory({ message }: Error): boolean {
  const [text = ''] = failedWrite.exec(message) ?? []
  return text.length > textBytesMax
}
