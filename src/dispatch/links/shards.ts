import { steadyClock, machineClock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { shardOf } from '../../strand/placement.js'
import type { Command, CommandOf, Outcome, StreamEvent } from '../../protocol/messages.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import type { Notice } from '../../protocol/notices.js'
import { RecordCache, type RecordCacheFigures } from './record-cache.js'
import {
  type Ask,
  type LinkListener,
  outcomeUnknown,
  type Receive as ReceiveProven,
  ShardLink,
} from './shard-link.js'
import { ShardWaits } from './shard-waits.js'

/** Takes the outcome of one command. @param isLate the shard may have told of changes that it does not show yet */
type Receive = (outcome: Outcome, proven?: boolean, isLate?: boolean) => void

/** Notices for others than the cache of records. */
export type FrontNotice = Exclude<Notice, { kind: 'recordsChanged' }>

/** What the shards report to a front besides outcomes. */
export interface FrontListener {
  events(shard: number, events: StreamEvent[]): void
  /** Called before the outcomes and events of the same commit. */
  notice(shard: number, notice: FrontNotice): void
  /**
   * The thread of a shard is new. Asks it for what the notices of its predecessor may not have said; no client is answered
   * before every front has.
   */
  learn(shard: number, ask: Ask): Promise<void>
  /** A new thread of a shard serves the front: it does not watch any agents yet. */
  restarted(shard: number): void
}

/** What a front is, as its shards know it. */
export interface FrontOptions {
  /** Memory for records that were read by hash, bytes; 0 is off. */
  cacheBytesMax: number
  /** Of a node of a cluster: another one may have a shard that this front does not talk to, or whose owner has no lease. */
  isOfNode: boolean
  /** What a shard has told cannot be read: this process must not go on without it. */
  lose(shard: number, reason: string): void
}

const moving = refuse('unavailable', 'A shard is moving to another node of the cluster, try again', {
  retryAfterSecs: 1,
})

/** All shards, as one front asks them: sends commands to the shards that own their agents. */
export class Shards {
  /** The front's ends of them. */
  readonly links: readonly ShardLink[]
  readonly #options: FrontOptions
  readonly #records: RecordCache
  readonly #waits = new ShardWaits((shard) => this.leaseRefusal(shard) === undefined)
  #listener: FrontListener | undefined

  constructor(count: number, options: FrontOptions) {
    this.#options = options
    this.#records = new RecordCache(options.cacheBytesMax)
    this.links = Array.from({ length: count }, (_none, shard) => this.#linkOf(shard))
  }

  /** Has a front take what its shards report. To be called before any of them has a thread. */
  follow(listener: FrontListener): void {
    this.#listener = listener
  }

  get count(): number {
    return this.links.length
  }

  /** True while every shard serves. */
  get serving(): boolean {
    return this.leaseRefusal() === undefined && this.links.every((shard) => shard.serving)
  }

  /** Sends a command to the shard that owns its agent; `receive` is called once, at once when it is refused. */
  send(agent: string, command: Command, receive: Receive): void {
    if (command.kind === 'recordGet') this.#get(command, receive)
    else this.sendTo(this.shardOf(agent), command, receive)
  }

  /** Sends a command to one shard by its number. */
  sendTo(shard: number, command: Command, receive: Receive): void {
    const link = this.linkOf(shard)
    // Whether a shard is watched is no answer, and an agent whose streams have ended is not to be watched on.
    const asksFirst = link.serving && command.kind !== 'watch'
    const cutOff = asksFirst ? link.lease?.refusal() : undefined
    const refusal = cutOff ?? link.send(command, this.#withProof(link, command, receive))
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
    return Promise.all(this.links.map((_one, shard) => this.askOne(shard, command)))
  }

  /**
   * Why nobody is answered from what this front has in memory of a shard, or of all: another node may have gone on. To be asked when
   * the answer is known; undefined while it may be given.
   */
  leaseRefusal(shard?: number): Refusal | undefined {
    if (!this.#options.isOfNode) return undefined
    if (shard !== undefined) return refusalOf(this.links[shard])
    for (const one of this.links) {
      const refusal = refusalOf(one)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  /** The same, where a shard that has been away for a moment is no reason: by default, for as long as one takes to move to another node. */
  lastingRefusal(shard?: number, momentMs: number = limits.shardMoveMs): Refusal | undefined {
    if (!this.#options.isOfNode) return undefined
    const asked = shard === undefined ? this.links : this.links.slice(shard, shard + 1)
    for (const one of asked) {
      const moves = !one.serving && steadyClock() - one.awaySinceMs < momentMs
      const refusal = moves ? undefined : refusalOf(one)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  /** Resolves when a shard, or all, may be answered from, or nobody waits for that any longer. */
  untilCurrent(shard?: number): Promise<void> {
    return this.#waits.until(shard)
  }

  /** The shard that owns an agent. */
  shardOf(agent: string): number {
    return shardOf(agent, this.count)
  }

  /** Counts of the cache of records, for metrics. */
  cacheFigures(): RecordCacheFigures {
    return this.#records.figures
  }

  /** The front's end of a shard. */
  linkOf(shard: number): ShardLink {
    const link = this.links[shard]
    if (link === undefined) throw new Error(`Expected a shard below ${this.count}, got ${shard}`)
    return link
  }

  #linkOf(shard: number): ShardLink {
    const { isOfNode, lose } = this.#options
    const listener: LinkListener = {
      events: (events) => this.#listener?.events(shard, events),
      notice: (notice) => this.#notice(shard, notice),
      learn: async (ask) => this.#listener?.learn(shard, ask),
      restarted: () => this.#listener?.restarted(shard),
      // Notices of its last commits may never have arrived.
      ended: () => this.#records.clear(),
      unreadable: (error) => lose(shard, `what its thread told cannot be read (${String(error)})`),
    }
    return new ShardLink(listener, isOfNode)
  }

  /** Takes from a notice what the cache of records must know. */
  #notice(shard: number, notice: Notice): void {
    if (notice.kind === 'recordsChanged') {
      this.#records.forget(notice.hashes)
      return
    }
    if (notice.kind === 'policiesChanged') this.#records.forgetReaders()
    this.#listener?.notice(shard, notice)
  }

  /** Reads a record by its hash: from the cache, or from its shard for the cache. */
  #get(command: CommandOf<'recordGet'>, receive: Receive): void {
    const body = this.#records.find(command)
    if (body !== undefined && this.leaseRefusal(this.shardOf(command.agent)) === undefined) {
      receive({ kind: 'reply', status: 200, body })
      return
    }
    this.sendTo(this.shardOf(command.agent), command, (outcome, _proven, isLate) => {
      const isCurrent = outcome.kind === 'reply' && outcome.gone !== true && isLate !== true
      if (isCurrent) this.#records.keep(command, outcome.body)
      receive(outcome)
    })
  }

  /**
   * Looks at the lease of the shard's owner when the outcome is there: the shard may have decided after its end. Whether a long
   * write had a group appended before is not known then. Where a command waits for an owner, it is the lease of that one.
   */
  #withProof(link: ShardLink, command: Command, receive: Receive): ReceiveProven {
    if (!this.#options.isOfNode) return receive
    return (outcome, proven, isLate) => {
      const cutOff = proven ? undefined : (link.lease ?? noLease).refusal()
      if (cutOff === undefined) receive(outcome, proven, isLate)
      else receive('options' in command ? outcomeUnknown : cutOff)
    }
  }
}

function refusalOf(one: ShardLink | undefined): Refusal | undefined {
  return one?.serving === true ? one.lease?.refusal() : moving
}

/** A lease that is never held. */
const noLease = new LeaseMemory(undefined, machineClock, () => moving)
