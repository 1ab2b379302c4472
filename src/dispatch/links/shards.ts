import { steadyClock, machineClock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { shardOf } from '../../strand/placement.js'
import type { Command, CommandOf, Outcome } from '../../protocol/messages.js'
import type { StreamEvent } from '../../protocol/stream-messages.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import type { Notice } from '../../protocol/notices.js'
import { RecordCache, type RecordCacheFigures } from './record-cache.js'
import {
  type RequestShard,
  type LinkListener,
  outcomeUnknown,
  type Receive,
  ShardLink,
} from './shard-link.js'
import { ShardWaits } from './shard-waits.js'
import { isWhileFull } from './while-full.js'

/** @param isLate the shard may have published changes that the outcome does not include */
type OutcomeCallback = (outcome: Outcome, proven?: boolean, isLate?: boolean) => void

/** Notices that the record cache does not consume. */
export type FrontNotice = Exclude<Notice, { kind: 'recordsChanged' }>

/** Receives everything from the shards except outcomes. */
export interface FrontListener {
  events(shard: number, events: StreamEvent[]): void
  /** Called before the outcomes and events of the same commit. */
  notice(shard: number, notice: FrontNotice): void
  /**
   * The thread of a shard is new. Requests the state that lost notices of its predecessor may have changed;
   * no client gets an answer until every front has done so.
   */
  catchUp(shard: number, request: RequestShard): Promise<void>
  /** A new thread of a shard serves the front. It has no watched agents yet. */
  restarted(shard: number): void
}

export interface FrontOptions {
  /** Memory for records that were read by hash, bytes; 0 turns the cache off. */
  cacheBytesMax: number
  /**
   * Whether this is a node of a cluster: a shard may have no owner with a lease, or no connection to this
   * front.
   */
  isOfNode: boolean
}

const moving = refuse('unavailable', 'A shard is moving to another node of the cluster, try again', {
  retryAfterSecs: 1,
})

const storageFull = refuse(
  'storage_full',
  'The data disk of the server is nearly full: free some space; reads still work',
)
const nodeFull = refuse(
  'storage_full',
  'The data disk of the node that owns this shard is nearly full: free some space there; reads still work',
)

/** All shards as one front calls them. Sends each command to the shard that owns its agent. */
export class Shards {
  readonly links: readonly ShardLink[]
  readonly #options: FrontOptions
  readonly #records: RecordCache
  readonly #waits = new ShardWaits((shard) => this.leaseRefusal(shard) === undefined)
  #listener: FrontListener | undefined
  /** Whether the data disk of this process is nearly full. */
  isReadOnly = (): boolean => false

  constructor(count: number, options: FrontOptions) {
    this.#options = options
    this.#records = new RecordCache(options.cacheBytesMax)
    this.links = Array.from({ length: count }, (_none, shard) => this.#linkOf(shard))
  }

  /** Sets the listener. Call this before any shard has a thread. */
  follow(listener: FrontListener): void {
    this.#listener = listener
  }

  get count(): number {
    return this.links.length
  }

  get serving(): boolean {
    return this.leaseRefusal() === undefined && this.links.every((shard) => shard.serving)
  }

  /**
   * Sends a command to the shard that owns its agent. `receive` is called once, synchronously for a refusal.
   */
  send(agent: string, command: Command, receive: OutcomeCallback): void {
    if (command.kind === 'recordGet') this.#get(command, receive)
    else this.sendTo(this.shardOf(agent), command, receive)
  }

  sendTo(shard: number, command: Command, receive: OutcomeCallback): void {
    const link = this.linkOf(shard)
    // `watch` reveals nothing, and watching must end when the streams of an agent have ended.
    const needsLease = link.serving && command.kind !== 'watch'
    const leaseRefusal = needsLease ? link.lease?.refusal() : undefined
    const fullRefusal = isWhileFull(command) || !this.#isFull(link) ? undefined : nodeFull
    const refusal = leaseRefusal ?? fullRefusal ?? link.send(command, this.#withProof(link, command, receive))
    if (refusal !== undefined) receive(refusal)
  }

  /** Sends a command to the shard that owns its agent and returns the outcome. */
  request(agent: string, command: Command): Promise<Outcome> {
    return new Promise((resolve) => this.send(agent, command, resolve))
  }

  /** Sends a command to one shard and returns the outcome. */
  requestShard(shard: number, command: Command): Promise<Outcome> {
    return new Promise((resolve) => this.sendTo(shard, command, resolve))
  }

  /** Sends all waiting commands. */
  flush(): void {
    for (const one of this.links) one.flush()
  }

  /** Sends a command to every shard and returns the outcomes in order of shards. */
  requestAll(command: Command): Promise<Outcome[]> {
    return Promise.all(this.links.map((_one, shard) => this.requestShard(shard, command)))
  }

  /**
   * Why this front must not answer from its memory of a shard, or of all shards: another node may have taken
   * over. Check when the answer is ready.
   * @returns undefined while answers are allowed
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

  /**
   * Why no shard takes writes now. In a cluster a full disk costs only the writes to the shards that its node
   * owns, which are refused when they are sent.
   */
  writeRefusal(): Refusal | undefined {
    const isFull = this.#options.isOfNode ? this.links.every((link) => this.#isFull(link)) : this.isReadOnly()
    return isFull ? storageFull : undefined
  }

  /** Whether the node that serves a shard refuses writes. */
  #isFull(link: ShardLink): boolean {
    return link.serving && (link.isReadOnly ?? this.isReadOnly())
  }

  /** Like `leaseRefusal`, but ignores shards that are away for less than `momentMs`, by default a move. */
  lastingRefusal(shard?: number, momentMs: number = limits.shardMoveMs): Refusal | undefined {
    if (!this.#options.isOfNode) return undefined
    const checked = shard === undefined ? this.links : this.links.slice(shard, shard + 1)
    for (const one of checked) {
      const moves = !one.serving && steadyClock() - one.awaySinceMs < momentMs
      const refusal = moves ? undefined : refusalOf(one)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  /** Resolves when a shard, or every shard, may be answered from, or the wait times out. */
  untilCurrent(shard?: number): Promise<void> {
    return this.#waits.until(shard)
  }

  shardOf(agent: string): number {
    return shardOf(agent, this.count)
  }

  /** Counts of the cache of records, for metrics. */
  cacheFigures(): RecordCacheFigures {
    return this.#records.figures
  }

  linkOf(shard: number): ShardLink {
    const link = this.links[shard]
    if (link === undefined) throw new Error(`Expected a shard below ${this.count}, got ${shard}`)
    return link
  }

  #linkOf(shard: number): ShardLink {
    const listener: LinkListener = {
      events: (events) => this.#listener?.events(shard, events),
      notice: (notice) => this.#notice(shard, notice),
      catchUp: async (request) => this.#listener?.catchUp(shard, request),
      restarted: () => this.#listener?.restarted(shard),
      // Notices of its last commits may never arrive.
      ended: () => this.#records.clear(),
    }
    return new ShardLink(listener, this.#options.isOfNode)
  }

  /** Applies a notice to the record cache, and reports it to the listener. */
  #notice(shard: number, notice: Notice): void {
    if (notice.kind === 'recordsChanged') {
      this.#records.forget(notice.hashes)
      return
    }
    if (notice.kind === 'policiesChanged') this.#records.forgetReaders()
    this.#listener?.notice(shard, notice)
  }

  /** Reads a record by hash from the cache, or from its shard into the cache. */
  #get(command: CommandOf<'recordGet'>, receive: OutcomeCallback): void {
    const body = this.#records.find(command)
    if (body !== undefined && this.leaseRefusal(this.shardOf(command.agent)) === undefined) {
      receive({ kind: 'reply', status: 200, body })
      return
    }
    this.sendTo(this.shardOf(command.agent), command, (outcome, _proven, isLate) => {
      const isCurrent = outcome.kind === 'reply' && outcome.deleted !== true && isLate !== true
      if (isCurrent) this.#records.keep(command, outcome.body)
      receive(outcome)
    })
  }

  /**
   * Checks the lease of the shard's owner when the outcome arrives, because the shard may have decided after
   * its end. For a long write it is then unknown whether a group was appended before. For a queued command,
   * the lease is that of the owner that executed it.
   */
  #withProof(link: ShardLink, command: Command, receive: OutcomeCallback): Receive {
    if (!this.#options.isOfNode) return receive
    return (outcome, proven, isLate) => {
      const leaseRefusal = proven ? undefined : (link.lease ?? noLease).refusal()
      if (leaseRefusal === undefined) receive(outcome, proven, isLate)
      else receive('options' in command ? outcomeUnknown : leaseRefusal)
    }
  }
}

function refusalOf(one: ShardLink | undefined): Refusal | undefined {
  return one?.serving === true ? one.lease?.refusal() : moving
}

/** A lease that is never held. */
const noLease = new LeaseMemory(undefined, machineClock, () => moving)
