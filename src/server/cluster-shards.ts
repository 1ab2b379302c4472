import { steadyClock } from '../base/clock.js'
import { isHeld } from '../base/fenced.js'
import { limits } from '../base/limits.js'
import type { Logger } from '../base/log.js'
import type { DataDirectory } from '../data-directory/data-directory.js'
import { shardFolder } from '../data-directory/shard-folders.js'
import { type Candidate, nextSteps, ownersOf, type Place } from '../dispatch/cluster/places.js'
import { Follower } from '../dispatch/follower.js'
import type { ShardThreads } from '../dispatch/shard-threads.js'
import type { ShardLine } from '../protocol/cluster-log-messages.js'
import type { FollowerTold } from '../protocol/follower-messages.js'

/** What a node needs to own shards, and to follow the others. */
export interface ClusterShardsParts {
  directory: DataDirectory
  log: Logger
  /** The name of this node. */
  node: string
  leaseMs: number
  threads: ShardThreads
  lineOf(shard: number): ShardLine
  /** All nodes that are alive, this one among them. */
  alive(): readonly Candidate[]
  /** Has no long read of a store begin any more; resolves when nobody has it open but the thread of the shard. */
  letGo(shard: number): Promise<void>
  /** Resolves when no front, here or in another node, sends anything more to a shard, or lets anybody in by what that has told. */
  leaving(shard: number): Promise<void>
  /** Lets a node know that it is to have a shard, which has been given up. */
  offer(node: string, shard: number): void
  lost(reason: string): void
}

/** Of a shard whose log was not read yet. */
const UNKNOWN = ''

/** A shard as this node sees it. */
interface Seen {
  place: Place
  /** Who owns it, where it is followed. */
  owner: string | undefined
  /** When it had all that its log had, by the steady clock. */
  atEndMs: number
  /** Since when it has been free, and until when this node was offered it, by the steady clock. */
  freeSinceMs: number | undefined
  offeredUntilMs: number
  /** Not to be opened before, after a failure. */
  pausedUntilMs: number
}

/** The shards of a node of a cluster: which of them it owns, and which it follows (docs/adr/0048-owners-of-shards.md). */
export class ClusterShards {
  readonly #parts: ClusterShardsParts
  readonly #seen: readonly Seen[]
  #follower: Follower | undefined
  readonly #failing = new Set<number>()
  #isStopping = false
  /** Openings and hand-overs that are under way. */
  readonly #underWay = new Set<Promise<void>>()

  constructor(parts: ClusterShardsParts) {
    this.#parts = parts
    this.#seen = Array.from({ length: parts.directory.shards }, () => ({
      place: 'followed' as const,
      owner: UNKNOWN,
      atEndMs: steadyClock(),
      freeSinceMs: undefined,
      offeredUntilMs: -Infinity,
      pausedUntilMs: -Infinity,
    }))
  }

  /** Opens all shards where this node is alone, and follows them otherwise. */
  begin(isAlone: boolean): void {
    for (const shard of this.#seen.keys()) {
      if (isAlone) this.#run(this.#open(shard, false))
      else this.#follow(shard)
    }
  }

  /** How many there are. */
  get count(): number {
    return this.#seen.length
  }

  /** Numbers of the shards that it owns. */
  get owned(): number[] {
    return [...this.#seen.entries()].filter(([, { place }]) => place === 'owned').map(([shard]) => shard)
  }

  /** Who owns each shard, as far as this node knows. */
  get owners(): (string | undefined)[] {
    const { node } = this.#parts
    return this.#seen.map(({ place, owner }) => (place === 'followed' ? owner : node))
  }

  /** How far the stores that it follows are behind their logs, seconds. */
  get lagSecs(): number {
    const nowMs = steadyClock()
    const lags = this.#seen.filter(({ place }) => place === 'followed').map(({ atEndMs }) => nowMs - atEndMs)
    return Math.max(0, ...lags) / 1_000
  }

  /** Its last owner has given a shard up for this node to have. */
  offered(shard: number): void {
    const seen = this.#seen[shard]
    if (seen === undefined) return
    seen.offeredUntilMs = steadyClock() + limits.shardMoveMs
    if (seen.place === 'followed') seen.owner = undefined
    this.step()
  }

  /** Does what is to be done next. To be called often. */
  step(): void {
    if (this.#isStopping) return
    const { node, alive, leaseMs } = this.#parts
    const nowMs = steadyClock()
    const { open, handOver } = nextSteps({
      node,
      alive: alive(),
      shards: this.#seen.map(({ place, owner, freeSinceMs, offeredUntilMs }) => ({
        place,
        owner: place === 'followed' ? owner : node,
        isOffered: offeredUntilMs > nowMs,
        isAbandoned: freeSinceMs !== undefined && nowMs - freeSinceMs > leaseMs,
      })),
    })
    for (const shard of open)
      if ((this.#seen[shard]?.pausedUntilMs ?? 0) <= nowMs) this.#run(this.#open(shard, true))
    if (handOver !== undefined) this.#run(this.#handOver(handOver.shard, handOver.to))
  }

  /** Gives up all shards for others to have, and takes none any more. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.#underWay)
    const { node, alive } = this.#parts
    const others = alive().filter((one) => one.node !== node)
    const next = ownersOf(others, this.#seen)
    await Promise.all(this.owned.map((shard) => this.#giveUp(shard, next[shard])))
    await this.#follower?.stop()
  }

  #run(work: Promise<void>): void {
    const done = work
      .catch((error: unknown) => this.#parts.log.error({ err: error }, 'a shard could not be moved'))
      .finally(() => this.#underWay.delete(done))
    this.#underWay.add(done)
  }

  #at(shard: number): Seen {
    const seen = this.#seen[shard]
    if (seen === undefined) throw new Error(`Expected a shard below ${this.#seen.length}, got ${shard}`)
    return seen
  }

  #follow(shard: number): void {
    const { directory, lineOf, lost } = this.#parts
    const { masterSeed, path } = directory
    this.#follower ??= new Follower({
      settings: { masterSeed },
      told: (told) => this.#told(told),
      died: (error) => lost(`the thread that follows the logs ended: ${error.message}`),
    })
    const seen = this.#at(shard)
    seen.place = 'followed'
    seen.owner = UNKNOWN
    seen.freeSinceMs = undefined
    seen.atEndMs = steadyClock()
    this.#follower.follow(shardFolder(path, shard), lineOf(shard))
  }

  async #open(shard: number, isFollowed: boolean): Promise<void> {
    const { threads, log } = this.#parts
    const seen = this.#at(shard)
    seen.place = 'opening'
    if (isFollowed) await this.#follower?.release(shard)
    try {
      await threads.open(shard)
      seen.place = 'owned'
      seen.offeredUntilMs = -Infinity
      log.info({ shard }, 'this node owns a shard')
    } catch (error) {
      // Another node was faster.
      const isTaken = error instanceof Error && isHeld(error)
      if (!isTaken) log.error({ shard, err: error }, 'a shard could not be opened: it is tried again')
      seen.pausedUntilMs = steadyClock() + (isTaken ? limits.clusterHeldMs : limits.clusterOpenPauseMs)
      this.#follow(shard)
    }
  }

  async #handOver(shard: number, to: string): Promise<void> {
    this.#parts.log.info({ shard, to }, 'a shard moves to another node')
    const isFree = this.#parts.letGo(shard)
    await this.#giveUp(shard, to)
    await isFree
    this.#follow(shard)
  }

  async #giveUp(shard: number, to: string | undefined): Promise<void> {
    const { threads, leaving, offer } = this.#parts
    this.#at(shard).place = 'leaving'
    threads.leaving(shard)
    await leaving(shard)
    await threads.handOver(shard)
    if (to !== undefined) offer(to, shard)
  }

  #told(told: Exclude<FollowerTold, { kind: 'released' }>): void {
    const { log } = this.#parts
    const seen = this.#at(told.shard)
    switch (told.kind) {
      case 'atEnd':
        this.#failing.delete(told.shard)
        if (seen.place !== 'followed') return
        this.#atEnd(seen, told)
        this.step()
        return
      case 'built':
        log.info(
          { shard: told.shard, place: told.place },
          'the store of a shard was made from the log of the cluster',
        )
        return
      case 'failed':
        if (!this.#failing.has(told.shard))
          log.error({ shard: told.shard, reason: told.reason }, 'the logs of the cluster cannot be followed')
        this.#failing.add(told.shard)
    }
  }

  #atEnd(seen: Seen, { owner, isOwned, ageMs }: Extract<FollowerTold, { kind: 'atEnd' }>): void {
    seen.atEndMs = steadyClock() - ageMs
    // What this node could not give up in order is its own to open.
    seen.owner = isOwned && owner !== this.#parts.node ? owner : undefined
    seen.freeSinceMs = seen.owner === undefined ? (seen.freeSinceMs ?? steadyClock()) : undefined
  }
}
