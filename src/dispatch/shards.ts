import { assert } from '../base/assert.js'
import { steadyClock } from '../base/clock.js'
import { refuse } from '../base/errors.js'
import { isFenced } from '../base/fenced.js'
import { limits } from '../base/limits.js'
import { shardOf } from '../base/placement.js'
import type { Command, CommandOf, Outcome, ShardSettings, StreamEvent } from '../protocol/messages.js'
import type { ShardFigures } from '../protocol/shard-figures.js'
import type { Notice } from '../protocol/notices.js'
import { RecordCache, type RecordCacheFigures } from './record-cache.js'
import { ShardPort, type LinesOf, type Receive } from './shard-port.js'
import { hasSpoiltMemory } from './spoilt-memory.js'

const notOwner = refuse('unavailable', 'This node cannot reach the database of its cluster, try again', {
  retryAfterSecs: 1,
})

/** Notices for others than the cache of records. */
export type FrontNotice = Exclude<Notice, { kind: 'recordsChanged' }>

/** What the shards report to the front thread besides outcomes. */
export interface ShardsListener {
  events(shard: number, events: StreamEvent[]): void
  /** Called before the outcomes and events of the same commit. */
  notice(shard: number, notice: FrontNotice): void
  /** A shard serves again after its thread died: it does not watch any agents yet. */
  restarted(shard: number): void
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

/** What makes the shards of a node its own. */
export interface ClusterOwner {
  linesOf: LinesOf
  /** Whether what this node has can be what is true: without the database for long, another one may have gone on. */
  mayAnswer(): boolean
}

/** How often the thread of one shard has ended since the start. */
interface Ends {
  deaths: number
  hangs: number
  /** When it last hung, by the monotonic clock. */
  hungAtMs: number | undefined
}

/**
 * All shard workers: sends commands to their shards, and restarts threads that died or hung
 * (docs/adr/0025-hung-threads.md).
 */
export class Shards {
  readonly #ports: ShardPort[]
  /** Set at the start; nothing is reported before. */
  #listener: ShardsListener | undefined
  readonly #records: RecordCache
  readonly #restartsAt: number[] = []
  readonly #ends: Ends[]
  readonly #silenceMaxMs: number
  readonly #cluster: ClusterOwner | undefined
  #looks: NodeJS.Timeout | undefined
  #lost = false
  /** A thread does not end although it was told to. */
  #stuck = false
  #closing = false

  constructor(settings: readonly ShardSettings[], { cacheBytesMax, silenceMaxMs, cluster }: ShardsOptions) {
    this.#cluster = cluster
    this.#records = new RecordCache(cacheBytesMax)
    this.#silenceMaxMs = silenceMaxMs
    this.#ends = settings.map(() => ({ deaths: 0, hangs: 0, hungAtMs: undefined }))
    this.#ports = settings.map(
      (one) =>
        new ShardPort(
          one,
          {
            events: (events) => this.#listener?.events(one.shard, events),
            notice: (notice) => this.#notice(one.shard, notice),
            unreadable: (error) =>
              this.#lose(one.shard, `what its thread told cannot be read (${String(error)})`),
            died: (error) => this.#restart(one.shard, error),
          },
          cluster?.linesOf,
        ),
    )
  }

  get count(): number {
    return this.#ports.length
  }

  /** True while every shard serves. */
  get serving(): boolean {
    return this.#cluster?.mayAnswer() !== false && this.#ports.every((port) => port.serving)
  }

  /** Opens every store. @throws Error when one cannot be opened */
  async start(listener: ShardsListener): Promise<void> {
    this.#listener = listener
    await Promise.all(this.#ports.map((port) => port.start()))
    if (this.#silenceMaxMs > 0) this.#looks = setInterval(() => this.#look(), limits.shardLookMs)
  }

  /** Sends a command to the shard that owns its agent; `receive` is called once, at once when it is refused. */
  send(agent: string, command: Command, receive: Receive): void {
    if (this.#cluster?.mayAnswer() === false) receive(notOwner)
    else if (command.kind === 'recordGet') this.#get(command, receive)
    else this.sendTo(shardOf(agent, this.#ports.length), command, receive)
  }

  /** Sends a command to one shard by its number. */
  sendTo(shard: number, command: Command, receive: Receive): void {
    const port = this.#ports[shard]
    if (port === undefined) throw new Error(`Expected a shard below ${this.#ports.length}, got ${shard}`)
    const refusal = this.#cluster?.mayAnswer() === false ? notOwner : port.send(command, receive)
    if (refusal !== undefined) receive(refusal)
  }

  /** The outcome of a command to the shard that owns its agent. */
  ask(agent: string, command: Command): Promise<Outcome> {
    return new Promise((resolve) => this.send(agent, command, resolve))
  }

  /** The outcome of a command to one shard. */
  askOne(shard: number, command: Command): Promise<Outcome> {
    return new Promise((resolve) => this.sendTo(shard, command, resolve))
  }

  /** The outcomes of a command to every shard, in the order of their numbers. */
  askAll(command: Command): Promise<Outcome[]> {
    return Promise.all(this.#ports.map((_port, shard) => this.askOne(shard, command)))
  }

  /** The shard that owns an agent. */
  shardOf(agent: string): number {
    return shardOf(agent, this.#ports.length)
  }

  /** Counts of the cache of records, for metrics. */
  cacheFigures(): RecordCacheFigures {
    return this.#records.figures
  }

  /** Figures, queue depth, silence and ends of each shard, for metrics. */
  figures(): (ShardFigures & { depth: number; silentMs: number; deaths: number; hangs: number })[] {
    return this.#ports.map((port, shard) => {
      const { deaths = 0, hangs = 0 } = this.#ends[shard] ?? {}
      return { ...port.figures, depth: port.depth, silentMs: port.silentMs, deaths, hangs }
    })
  }

  async close(): Promise<void> {
    this.#closing = true
    await Promise.all(this.#ports.map((port) => port.close()))
    clearInterval(this.#looks)
  }

  /**
   * Ends every thread whatever it is doing, before the process ends.
   * @returns whether all have ended; if not, the process can only be killed, since an exit waits for its threads
   */
  async abandon(): Promise<boolean> {
    this.#closing = true
    clearInterval(this.#looks)
    if (this.#stuck) return false
    const ended = Promise.all(this.#ports.map((port) => port.abandon())).then(() => true)
    const late = new Promise<false>((resolve) => setTimeout(() => resolve(false), limits.shardEndMs))
    return Promise.race([ended, late])
  }

  #notice(shard: number, notice: Notice): void {
    if (notice.kind === 'policiesChanged') this.#records.forgetReaders()
    if (notice.kind === 'recordsChanged') this.#records.forget(notice.hashes)
    else this.#listener?.notice(shard, notice)
  }

  /** Checks whether every thread that has work makes progress. */
  #look(): void {
    const nowMs = steadyClock()
    for (const [shard, port] of this.#ports.entries()) {
      const verdict = port.look(nowMs, this.#silenceMaxMs)
      if (verdict === 'hung') this.#hung(shard, nowMs)
      if (verdict !== 'stuck') continue
      this.#stuck = true
      this.#lose(shard, 'its thread hangs and cannot be ended')
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
      this.#lose(shard, 'its thread hangs again')
  }

  #lose(shard: number, reason: string): void {
    if (this.#lost) return
    this.#lost = true
    this.#listener?.lost(shard, reason)
  }

  /** Reads a record by its hash: from the cache, or from its shard for the cache. */
  #get(command: CommandOf<'recordGet'>, receive: Receive): void {
    const body = this.#records.find(command)
    if (body !== undefined) {
      receive({ kind: 'reply', status: 200, body })
      return
    }
    this.sendTo(shardOf(command.agent, this.#ports.length), command, (outcome) => {
      if (outcome.kind === 'reply' && outcome.gone !== true) this.#records.keep(command, outcome.body)
      receive(outcome)
    })
  }

  /** A thread that died is started again after a pause that grows with the deaths of the last minute. */
  #restart(shard: number, error: Error): void {
    this.#records.clear()
    if (this.#closing) return
    const ends = this.#ends[shard]
    if (ends !== undefined) ends.deaths++
    if (hasSpoiltMemory(error)) {
      this.#lose(shard, `LMDB wrote past the end of its memory (${error.message})`)
      return
    }
    if (isFenced(error)) {
      this.#lose(shard, 'another node of the cluster has taken it')
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
    const port = this.#ports[shard]
    if (port === undefined || this.#closing) return
    try {
      await port.start()
      this.#listener?.restarted(shard)
    } catch (error) {
      this.#restart(shard, error instanceof Error ? error : new Error(String(error)))
    }
  }
}
