import { limits } from '../base/limits.js'
import { shardOf } from '../base/placement.js'
import type {
  Command,
  CommandOf,
  Outcome,
  ShardFigures,
  ShardSettings,
  StreamEvent,
} from '../protocol/messages.js'
import { RecordCache, type RecordCacheFigures } from './record-cache.js'
import { ShardPort, type Receive } from './shard-port.js'

/** What the shards tell the front thread beside outcomes. */
export interface ShardsListener {
  events(shard: number, events: StreamEvent[]): void
  /** The row policies of agents changed; told before the events of the same commit. */
  policiesChanged(agents: string[]): void
  /** Records of agents were erased; told before the events of the same commit. */
  erased(agents: string[]): void
  /** The strands of agents grew by imported records, of which no event tells. */
  imported(agents: string[]): void
  failed(shard: number, failures: string[]): void
  /** A shard serves again after its thread died: what it was told to watch is gone. */
  restarted(shard: number): void
  died(shard: number, error: Error): void
}

/** All shard workers: places commands, and starts a thread again that died. */
export class Shards {
  readonly #ports: ShardPort[]
  readonly #listener: ShardsListener
  readonly #records: RecordCache
  readonly #restartsAt: number[] = []
  #closing = false

  constructor(settings: readonly ShardSettings[], listener: ShardsListener, cacheBytesMax: number) {
    this.#listener = listener
    this.#records = new RecordCache(cacheBytesMax)
    this.#ports = settings.map(
      (one) =>
        new ShardPort(one, {
          events: (events) => listener.events(one.shard, events),
          policiesChanged: (agents) => {
            this.#records.forgetReaders()
            listener.policiesChanged(agents)
          },
          erased: (agents) => listener.erased(agents),
          recordsChanged: (hashes) => this.#records.forget(hashes),
          imported: (agents) => listener.imported(agents),
          failed: (failures) => listener.failed(one.shard, failures),
          died: (error) => this.#restart(one.shard, error),
        }),
    )
  }

  get count(): number {
    return this.#ports.length
  }

  /** True while every shard serves. */
  get serving(): boolean {
    return this.#ports.every((port) => port.serving)
  }

  /** Opens every store. @throws Error when one cannot be opened */
  async start(): Promise<void> {
    await Promise.all(this.#ports.map((port) => port.start()))
  }

  /** Sends a command to the shard that owns its agent; `receive` is called once, at once when it is refused. */
  send(agent: string, command: Command, receive: Receive): void {
    if (command.kind === 'recordGet') this.#get(command, receive)
    else this.sendTo(shardOf(agent, this.#ports.length), command, receive)
  }

  /** Sends a command to one shard by its number. */
  sendTo(shard: number, command: Command, receive: Receive): void {
    const port = this.#ports[shard]
    if (port === undefined) throw new Error(`Expected a shard below ${this.#ports.length}, got ${shard}`)
    const refusal = port.send(command, receive)
    if (refusal !== undefined) receive({ kind: 'refused', refusal })
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

  /** What the cache of records has done, for metrics. */
  cacheFigures(): RecordCacheFigures {
    return this.#records.figures
  }

  /** Figures and queue depth of each shard, for metrics. */
  figures(): (ShardFigures & { depth: number })[] {
    return this.#ports.map((port) => ({ ...port.figures, depth: port.depth }))
  }

  async close(): Promise<void> {
    this.#closing = true
    await Promise.all(this.#ports.map((port) => port.close()))
  }

  /** Reads a record by its hash: from the cache, or from its shard for the cache. */
  #get(command: CommandOf<'recordGet'>, receive: Receive): void {
    const body = this.#records.find(command)
    if (body !== undefined) {
      receive({ kind: 'reply', status: 200, body })
      return
    }
    this.sendTo(shardOf(command.agent, this.#ports.length), command, (outcome) => {
      if (outcome.kind === 'reply') this.#records.keep(command, outcome.body)
      receive(outcome)
    })
  }

  /** A thread that died is started again after a pause that grows with the deaths of the last minute. */
  #restart(shard: number, error: Error): void {
    this.#records.clear()
    if (this.#closing) return
    this.#listener.died(shard, error)
    const now = Date.now()
    this.#restartsAt.push(now)
    while ((this.#restartsAt[0] ?? now) < now - limits.shardRestartWindowMs) this.#restartsAt.shift()
    const pauseMs = Math.min(limits.shardRestartPauseMaxMs, 10 * 2 ** Math.min(this.#restartsAt.length, 12))
    setTimeout(() => void this.#startAgain(shard), pauseMs)
  }

  async #startAgain(shard: number): Promise<void> {
    const port = this.#ports[shard]
    if (port === undefined || this.#closing) return
    try {
      await port.start()
      this.#listener.restarted(shard)
    } catch (error) {
      this.#restart(shard, error instanceof Error ? error : new Error(String(error)))
    }
  }
}
