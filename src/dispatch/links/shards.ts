import { steadyClock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { machineClock } from '../../base/machine-clock.js'
import { limits } from '../../base/limits/limits.js'
import { shardOf } from '../../strand/placement.js'
import type { Command, CommandOf, Outcome } from '../../protocol/messages.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import type { Notice } from '../../protocol/notices.js'
import { RecordCache, type RecordCacheFigures } from './record-cache.js'
import { ShardWaits } from './shard-waits.js'
import { outcomeUnknown, type Receive as ReceiveProven } from './shard-link.js'

/** Takes the outcome of one command. @param isLate the shard may have told of changes that it does not show yet */
type Receive = (outcome: Outcome, proven?: boolean, isLate?: boolean) => void

/** Notices for others than the cache of records. */
export type FrontNotice = Exclude<Notice, { kind: 'recordsChanged' }>

/** One shard, to whom commands are sent. */
export interface ShardSender {
  readonly serving: boolean
  /** Since when it has not been, by the steady clock. */
  readonly awaySinceMs: number
  /** Until when what its thread, or the last one, answers may be told; absent for a server of its own. */
  readonly lease: LeaseMemory | undefined
  /** @returns a refusal, and nothing is sent, when the shard's queue is full, or it is not serving and nobody waits for it */
  send(command: Command, receive: ReceiveProven): Refusal | undefined
}

/** What a front is, as its shards know it. */
export interface FrontOptions {
  /** Memory for records that were read by hash, bytes; 0 is off. */
  cacheBytesMax: number
  /**
   * Of a node of a cluster: another one may have gone on with a shard that this front does not talk to, or whose owner has no
   * lease.
   */
  isOfNode?: boolean
}

const moving = refuse('unavailable', 'A shard is moving to another node of the cluster, try again', {
  retryAfterSecs: 1,
})

/** All shards, as one front asks them: sends commands to the shards that own their agents. */
export class Shards {
  readonly #shards: readonly ShardSender[]
  readonly #records: RecordCache
  readonly #isOfNode: boolean
  readonly #waits = new ShardWaits((shard) => this.leaseRefusal(shard) === undefined)

  constructor(shards: readonly ShardSender[], { cacheBytesMax, isOfNode = false }: FrontOptions) {
    this.#shards = shards
    this.#isOfNode = isOfNode
    this.#records = new RecordCache(cacheBytesMax)
  }

  get count(): number {
    return this.#shards.length
  }

  /** True while every shard serves. */
  get serving(): boolean {
    return this.leaseRefusal() === undefined && this.#shards.every((shard) => shard.serving)
  }

  /** Sends a command to the shard that owns its agent; `receive` is called once, at once when it is refused. */
  send(agent: string, command: Command, receive: Receive): void {
    if (command.kind === 'recordGet') this.#get(command, receive)
    else this.sendTo(this.shardOf(agent), command, receive)
  }

  /** Sends a command to one shard by its number. */
  sendTo(shard: number, command: Command, receive: Receive): void {
    const sender = this.#shards[shard]
    if (sender === undefined) throw new Error(`Expected a shard below ${this.count}, got ${shard}`)
    // Whether a shard is watched is no answer, and an agent whose streams have ended is not to be watched on.
    const asksFirst = sender.serving && command.kind !== 'watch'
    const cutOff = asksFirst ? sender.lease?.refusal() : undefined
    const refusal = cutOff ?? sender.send(command, this.#withProof(sender, command, receive))
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
    return Promise.all(this.#shards.map((_one, shard) => this.askOne(shard, command)))
  }

  /**
   * Why nobody is answered from what this front has in memory of a shard, or of all: another node may have gone on. To be asked when
   * the answer is known; undefined while it may be given.
   */
  leaseRefusal(shard?: number): Refusal | undefined {
    if (!this.#isOfNode) return undefined
    if (shard !== undefined) return refusalOf(this.#shards[shard])
    for (const one of this.#shards) {
      const refusal = refusalOf(one)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  /** The same, where a shard that has been away for a moment is no reason: by default, for as long as one takes to move to another node. */
  lastingRefusal(shard?: number, momentMs: number = limits.shardMoveMs): Refusal | undefined {
    if (!this.#isOfNode) return undefined
    const asked = shard === undefined ? this.#shards : this.#shards.slice(shard, shard + 1)
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

  /** Takes from a notice what the cache of records must know. @returns the notice if others must know it, too */
  take(notice: Notice): FrontNotice | undefined {
    if (notice.kind === 'recordsChanged') {
      this.#records.forget(notice.hashes)
      return undefined
    }
    if (notice.kind === 'policiesChanged') this.#records.forgetReaders()
    return notice
  }

  /** The thread of a shard has ended: notices of its last commits may never have arrived. */
  ended(): void {
    this.#records.clear()
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
  #withProof(sender: ShardSender, command: Command, receive: Receive): ReceiveProven {
    if (!this.#isOfNode) return receive
    return (outcome, proven, isLate) => {
      const cutOff = proven ? undefined : (sender.lease ?? noLease).refusal()
      if (cutOff === undefined) receive(outcome, proven, isLate)
      else receive('options' in command ? outcomeUnknown : cutOff)
    }
  }
}

function refusalOf(one: ShardSender | undefined): Refusal | undefined {
  return one?.serving === true ? one.lease?.refusal() : moving
}

/** Of who owns nothing. */
const noLease = new LeaseMemory(undefined, machineClock, () => moving)
