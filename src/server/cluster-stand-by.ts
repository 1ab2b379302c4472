import { steadyClock } from '../base/clock.js'
import { refuse, type Refusal } from '../base/errors.js'
import type { Logger } from '../base/log.js'
import type { DataDirectory } from '../data-directory/data-directory.js'
import { shardFolder } from '../data-directory/shard-folders.js'
import { assign } from '../dispatch/cluster/assignment.js'
import { Follower } from '../dispatch/follower.js'
import type { Member } from '../dispatch/cluster/membership.js'
import { ClusterFront, type ClusterFrontParts } from './cluster-front.js'
import type { ShardLine } from '../protocol/cluster-log-messages.js'
import type { FollowerTold } from '../protocol/follower-messages.js'

/** What standing by needs. */
interface StandByParts {
  directory: DataDirectory
  log: Logger
  lost(reason: string): void
  /** The name of this node. */
  node: string
  lineOf(shard: number): ShardLine
  members(): readonly Member[]
  front: ClusterFrontParts
}

/** A node that stands by: it keeps its stores up to the logs, and finds out when the shards are its own to open. */
export class StandBy {
  /** Resolves when it is this node's turn, and nobody has the stores open: with false when it was stopped before. */
  readonly turn: Promise<boolean>
  readonly #parts: StandByParts
  readonly #follower: Follower
  readonly #front: ClusterFront
  #take: (isTurn: boolean) => void = () => {}
  #owner = ''
  #atEndMs = steadyClock()
  #failing = false

  constructor(parts: StandByParts) {
    this.#parts = parts
    this.#front = new ClusterFront(parts.front)
    const { directory, lost, lineOf } = parts
    const { masterSeed, path, shards } = directory
    this.#follower = new Follower({
      settings: {
        masterSeed,
        stores: Array.from({ length: shards }, (_none, shard) => ({
          path: shardFolder(path, shard),
          line: lineOf(shard),
        })),
      },
      told: (told) => this.#told(told),
      died: (error) => lost(`the thread that follows the logs ended: ${error.message}`),
    })
    this.turn = this.#untilTurn()
  }

  /** Why this node answers nothing. */
  get refusal(): Refusal {
    const owner = this.#memberOf(this.#owner)
    const where = owner === undefined ? '' : `: the node ${owner.node} on ${owner.address} serves`
    const serving = owner && { node: owner.node, address: owner.address }
    return refuse('unavailable', `This node of the cluster stands by${where}`, {
      retryAfterSecs: 1,
      extra: { stands_by: true, ...(serving && { serving }) },
    })
  }

  /** How long ago it had all that the logs had, or else how long it has been standing by, seconds. */
  get lagSecs(): number {
    return (steadyClock() - this.#atEndMs) / 1_000
  }

  /** Ends it. */
  async stop(): Promise<void> {
    this.#take(false)
    await this.turn
  }

  /** Resolves when this node has the stores open no more. It does not take its turn then. */
  async unfollow(): Promise<void> {
    await this.#follower.stop()
  }

  async #untilTurn(): Promise<boolean> {
    const isTurn = await new Promise<boolean>((resolve) => (this.#take = resolve))
    this.#front.close()
    await this.#follower.stop()
    return isTurn
  }

  #memberOf(name: string): Member | undefined {
    return this.#parts.members().find(({ node }) => node === name)
  }

  #told(told: FollowerTold): void {
    const { log } = this.#parts
    switch (told.kind) {
      case 'atEnd':
        this.#failing = false
        this.#owner = told.owner
        this.#atEndMs = steadyClock() - told.ageMs
        this.#front.follow(told.ownerIsAlive ? this.#memberOf(told.owner) : undefined)
        if (!told.ownerIsAlive && this.#isNext(told.owner)) this.#take(true)
        return
      case 'built':
        log.info(
          { shard: told.shard, place: told.place },
          'the store of a shard was made from the log of the cluster',
        )
        return
      case 'failed':
        if (!this.#failing)
          log.error({ shard: told.shard, reason: told.reason }, 'the logs of the cluster cannot be followed')
        this.#failing = true
    }
  }

  /** Whether this node is the one that all would name. Where they differ, they try for the first shard, and the log decides. */
  #isNext(owner: string): boolean {
    const { node } = this.#parts
    const names = this.#parts.members().map((member) => member.node)
    const others = names.filter((name) => name !== owner && name !== node)
    return assign([node, ...others], { shards: 1, copies: 1 })[0]?.owner === node
  }
}
