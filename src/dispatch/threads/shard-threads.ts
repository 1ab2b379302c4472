import type { MessagePort } from 'node:worker_threads'
import { assert } from '../../base/assert.js'
import { steadyClock } from '../../base/clock.js'
import { hasLostLog, isFenced, isHeld, lostLogMessage } from '../../protocol/fenced.js'
import { limits } from '../../base/limits/limits.js'
import type { Command, Outcome, ShardSettings, StreamEvent } from '../../protocol/messages.js'
import type { Notice } from '../../protocol/notices.js'
import type { ShardFigures } from '../../protocol/shard-figures.js'
import type { ShardMemory } from '../../protocol/shard-memory.js'
import { FrontLink, join, type FrontEnd } from '../links/front-link.js'
import { type ClusterOwner, ShardPort } from './shard-port.js'
import { ShardWorkers } from './shard-workers.js'
import { Shards, type FrontNotice } from '../links/shards.js'
import { hasSpoiltMemory } from '../spoilt-memory.js'

/** What the shards report to a front besides outcomes. */
export interface FrontListener {
  events(shard: number, events: StreamEvent[]): void
  /** Called before the outcomes and events of the same commit. */
  notice(shard: number, notice: FrontNotice): void
  /**
   * The thread of a shard is new. Asks it for what the notices of its predecessor may not have said; nobody is answered
   * before every front has.
   */
  learn(shard: number, ask: Ask): Promise<void>
  /** A shard serves again after its thread died: it does not watch any agents yet. */
  restarted(shard: number): void
}

/** Asks a shard. */
export type Ask = (command: Command) => Promise<Outcome>

/** What the shards report to the main thread. */
export interface ShardsListener extends FrontListener {
  /** A thread was started in place of one that died: the other fronts are to talk to it. */
  replaced(shard: number): void
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
  /** The main thread's ends of them. */
  readonly links: readonly FrontLink[]
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
    this.links = settings.map(({ shard }) => this.#linkOf(shard, cluster !== undefined))
    this.#ports = settings.map(
      (one, place) =>
        new ShardPort({
          settings: one,
          workers: this.#workers,
          cluster,
          front: this.#linkAt(place),
          died: (error) => this.#restart(one.shard, error),
        }),
    )
    const isOfNode = cluster !== undefined
    this.shards = new Shards(this.links, { cacheBytesMax, isOfNode })
  }

  #linkOf(shard: number, waits: boolean): FrontLink {
    return new FrontLink(
      {
        events: (events) => this.#listener?.events(shard, events),
        notice: (notice) => this.#notice(shard, notice),
        unreadable: (error) => this.lose(shard, `what its thread told cannot be read (${String(error)})`),
        ended: () => this.shards.ended(),
      },
      waits,
    )
  }

  /** Opens every store. @throws Error when one cannot be opened */
  async start(listener: ShardsListener): Promise<void> {
    this.begin(listener)
    const ends = await Promise.all(this.#ports.map((port) => port.start()))
    for (const [shard, end] of ends.entries()) {
      const link = this.#linkAt(shard)
      await link.attach(end)
      link.serve(end)
    }
  }

  /** Opens none yet. */
  begin(listener: ShardsListener): void {
    this.#listener = listener
    if (this.#silenceMaxMs > 0) this.#looks ??= setInterval(() => this.#look(), limits.shardLookMs)
  }

  /**
   * Opens one store; returns when its shard serves the main thread.
   * @throws Error when it cannot be opened; `isHeld` where another node of the cluster owns it
   */
  async open(shard: number): Promise<void> {
    const end = await this.#portAt(shard).start([...this.#fronts])
    this.#listener?.replaced(shard)
    await this.#learn(shard, end)
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

  #notice(shard: number, notice: Notice): void {
    const forOthers = this.shards.take(notice)
    if (forOthers !== undefined) this.#listener?.notice(shard, forOthers)
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
    if (hasSpoiltMemory(error)) {
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

  async #learn(shard: number, end: FrontEnd): Promise<void> {
    const serves = await join(this.#linkAt(shard), end, {
      learn: async (ask) => this.#listener?.learn(shard, ask),
      failed: (reason) => this.lose(shard, reason),
    })
    if (serves) this.#listener?.restarted(shard)
  }

  #linkAt(shard: number): FrontLink {
    const link = this.links[shard]
    assert(link !== undefined, 'the main thread has an end of each shard')
    return link
  }

  #portAt(shard: number): ShardPort {
    const port = this.#ports[shard]
    assert(port !== undefined, 'each shard has a port')
    return port
  }
}
