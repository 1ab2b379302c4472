import { existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { steadyClock } from '../../base/clock.js'
import { hasLostLog, isHeld } from '../../protocol/fenced.js'
import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import { clusterOf } from '../../data/cluster-origin.js'
import type { DataDirectory } from '../../data/directory.js'
import { shardFolder } from '../../data/shard-folders.js'
import { type Candidate, nextSteps, ownersOf, type ShardRole, unknownOwner } from '../members/placement.js'
import { Follower } from './follower.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import type { ShardLine } from '../../protocol/cluster-log-messages.js'
import type { FollowerReport } from '../../protocol/follower-messages.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'

/** What a node needs to own shards, and to follow the others. */
export interface ClusterShardsParts {
  directory: DataDirectory
  log: Logger
  /** The name of this node. */
  node: string
  leaseMs: number
  lease: LeaseMemory
  /** How many nodes hold each shard. */
  copies: number
  threads: ShardThreads
  lineOf(shard: number): ShardLine
  /** All nodes that are alive, this one among them. */
  alive(): readonly Candidate[]
  /** Has no long read of a store begin any more; resolves when nobody has it open but the thread of the shard. */
  letGo(shard: number): Promise<void>
  /** Resolves when no front, here or in another node, sends anything more to a shard, or lets anybody in by what that has told. */
  leaving(shard: number): Promise<void>
  /** Whether it has a link to another node, as whichever incarnation where none is named. */
  reaches(node: string, incarnation?: number): boolean
  /** Whether this node reaches who owns a shard. */
  isServed(shard: number): boolean
  /** Lets a node know that it is to have a shard, which has been given up. */
  offer(node: string, shard: number): void
  /** The log of a shard lacks what this node knows to be durable. May be called several times. */
  refuse(reason: string): void
  lost(reason: string): void
}

/** A shard as this node sees it. */
interface Seen {
  place: ShardRole
  /** Who owns it, where it is followed. */
  owner: string | undefined
  /** When it had all that its log had, by the steady clock. */
  atEndMs: number
  /** Since when it has been free, and until when this node was offered it, by the steady clock. */
  freeSinceMs: number | undefined
  /** The last segment of its log, when that was looked at. */
  segment: number
  offeredUntilMs: number
  /** Not to be opened before, after a failure. */
  pausedUntilMs: number
  /** Since when its store is not kept, by the steady clock; Infinity where there is none. */
  leftSinceMs: number
}

/** The shards of a node of a cluster: which of them it owns, which it follows, and which only others have (docs/adr/0048-owners-of-shards.md). */
export class ClusterShards {
  readonly #parts: ClusterShardsParts
  readonly #seen: readonly Seen[]
  #follower: Follower | undefined
  readonly #failing = new Set<number>()
  #isStopping = false
  /** When a shard was last moved, or this node began, by the steady clock. */
  #movedAtMs = steadyClock()
  /** Openings and hand-overs that are under way. */
  readonly #underWay = new Set<Promise<void>>()

  constructor(parts: ClusterShardsParts) {
    this.#parts = parts
    this.#seen = Array.from({ length: parts.directory.shards }, () => ({
      place: 'elsewhere' as const,
      owner: unknownOwner,
      atEndMs: steadyClock(),
      freeSinceMs: undefined,
      segment: 0,
      offeredUntilMs: -Infinity,
      pausedUntilMs: -Infinity,
      leftSinceMs: steadyClock(),
    }))
  }

  /** Opens all shards where this node is alone, and follows those that it is to hold otherwise. */
  begin(isAlone: boolean): void {
    if (isAlone) for (const shard of this.#seen.keys()) this.#run(this.#open(shard, false))
    else this.step()
  }

  /** How many there are. */
  get count(): number {
    return this.#seen.length
  }

  /** Whether it gives all of them up. */
  get isStopping(): boolean {
    return this.#isStopping
  }

  /** Numbers of the shards that it owns. */
  get owned(): number[] {
    return [...this.#seen.entries()].filter(([, { place }]) => place === 'owned').map(([shard]) => shard)
  }

  /** Numbers of those that it owns, and of those whose stores it has up to their logs. */
  get held(): number[] {
    const nowMs = steadyClock()
    const isNear = ({ owner, atEndMs }: Seen) =>
      owner !== unknownOwner && nowMs - atEndMs < this.#parts.leaseMs
    return [...this.#seen.entries()]
      .filter(([, seen]) => seen.place === 'owned' || (seen.place === 'followed' && isNear(seen)))
      .map(([shard]) => shard)
  }

  /** Who owns each shard, as far as this node knows. */
  get owners(): (string | undefined)[] {
    return this.#seen.map((seen) => this.#ownerOf(seen))
  }

  #ownerOf({ place, owner }: Seen): string | undefined {
    return place === 'followed' || place === 'elsewhere' ? owner : this.#parts.node
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
    const { node, alive, copies, leaseMs } = this.#parts
    const nowMs = steadyClock()
    const { open, handOver, follow, unfollow, remove } = nextSteps({
      node,
      alive: alive(),
      copies,
      shards: this.#seen.map((seen) => ({
        place: seen.place,
        owner: this.#ownerOf(seen),
        isOffered: seen.offeredUntilMs > nowMs,
        freeLeases: seen.freeSinceMs === undefined ? 0 : (nowMs - seen.freeSinceMs) / leaseMs,
        isLeft: nowMs - seen.leftSinceMs > limits.clusterStoreLeftMs,
      })),
    })
    for (const shard of follow) this.#follow(shard)
    for (const shard of unfollow) this.#run(this.#unfollow(shard))
    for (const shard of remove) this.#remove(shard)
    for (const shard of open)
      if ((this.#seen[shard]?.pausedUntilMs ?? 0) <= nowMs) this.#run(this.#open(shard, true))
    if (handOver !== undefined) this.#run(this.#handOver(handOver.shard, handOver.to))
    if (this.#underWay.size > 0) this.#movedAtMs = nowMs
    // Others need the processors when a node starts, or shards move.
    const isCalm = nowMs - this.#movedAtMs > leaseMs
    if (isCalm && this.owned.length < this.count) this.#parts.threads.keepSpares()
  }

  /**
   * Gives up all shards for others to have, and takes none any more.
   * @param timeMs how long each of them may wait until the ones before are served again, in all
   */
  async stop(timeMs: number): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.#underWay)
    const { node, alive } = this.#parts
    const others = alive().filter((one) => one.node !== node)
    const next = ownersOf(others, this.#seen)
    const owned = this.owned.values()
    // Not all at once: those that are left serve meanwhile, and each of the others opens few at a time.
    const untilMs = steadyClock() + timeMs
    const mover = async () => {
      for (const shard of owned) {
        const to = next[shard]
        await this.#giveUp(shard, to)
        if (to !== undefined && this.#parts.reaches(to)) await this.#untilServed(shard, untilMs)
      }
    }
    await Promise.all(Array.from({ length: limits.clusterSpareThreads }, mover))
    await this.#follower?.stop()
  }

  /** Resolves when the thread that follows has no store open. */
  async unfollow(): Promise<void> {
    this.#isStopping = true
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
    const seen = this.#at(shard)
    seen.place = 'followed'
    seen.owner = unknownOwner
    seen.freeSinceMs = undefined
    seen.atEndMs = steadyClock()
    this.#thread.follow(this.#folderOf(shard), this.#parts.lineOf(shard))
  }

  async #unfollow(shard: number): Promise<void> {
    const seen = this.#at(shard)
    seen.place = 'elsewhere'
    seen.owner = unknownOwner
    seen.leftSinceMs = steadyClock()
    await this.#thread.release(shard)
  }

  #remove(shard: number): void {
    this.#at(shard).leftSinceMs = Infinity
    if (!existsSync(this.#folderOf(shard))) return
    this.#parts.log.info({ shard }, 'the store of a shard that other nodes hold is removed')
    this.#thread.remove(this.#folderOf(shard))
  }

  #folderOf(shard: number): string {
    return shardFolder(this.#parts.directory.path, shard)
  }

  /** That which follows, from when it is needed on. */
  get #thread(): Follower {
    const { directory, lease, leaseMs, lost } = this.#parts
    this.#follower ??= new Follower({
      settings: {
        masterSeed: directory.masterSeed,
        cluster: clusterOf(directory),
        lease: lease.memory,
        leaseMs,
      },
      told: (told) => this.#told(told),
      died: (error) => lost(`the thread that follows the logs ended: ${error.message}`),
    })
    return this.#follower
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
      if (error instanceof Error && hasLostLog(error)) {
        this.#parts.refuse(error.message)
        seen.place = 'elsewhere'
        return
      }
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

  /** Resolves when another node serves a shard, or nobody waits for that any longer. */
  async #untilServed(shard: number, latestMs: number): Promise<void> {
    const untilMs = Math.min(latestMs, steadyClock() + limits.clusterMoveMs)
    while (!this.#parts.isServed(shard) && steadyClock() < untilMs) await pause(limits.shardMoveLookMs)
  }

  async #giveUp(shard: number, to: string | undefined): Promise<void> {
    const { threads, leaving, offer } = this.#parts
    this.#at(shard).place = 'leaving'
    threads.leaving(shard)
    await leaving(shard)
    await threads.handOver(shard)
    if (to !== undefined) offer(to, shard)
  }

  #told(told: Exclude<FollowerReport, { kind: 'released' }>): void {
    const { log } = this.#parts
    const seen = this.#at(told.shard)
    switch (told.kind) {
      case 'atEnd':
        this.#failing.delete(told.shard)
        if (seen.place !== 'followed') return
        // All else is looked at with each beat: what to do next takes a while to find, and this comes often.
        if (this.#atEnd(seen, told)) this.step()
        return
      case 'built':
        log.info(
          { shard: told.shard, place: told.place },
          'the store of a shard was made from the log of the cluster',
        )
        return
      case 'lost':
        this.#parts.refuse(told.reason)
        return
      case 'failed':
        if (!this.#failing.has(told.shard))
          log.error({ shard: told.shard, reason: told.reason }, 'the logs of the cluster cannot be followed')
        this.#failing.add(told.shard)
    }
  }

  /** @returns whether the shard may be opened, or has another owner than before */
  #atEnd(seen: Seen, told: Extract<FollowerReport, { kind: 'atEnd' }>): boolean {
    const { segment, owner, incarnation, isClosed, isOwned, ageMs } = told
    const before = seen.owner
    // A node that says by its link that it has a lease owns its shards yet, whatever the table of nodes says.
    const isOwner = isOwned || (!isClosed && this.#parts.reaches(owner, incarnation))
    seen.atEndMs = steadyClock() - ageMs
    // What this node could not give up in order is its own to open.
    seen.owner = isOwner && owner !== this.#parts.node ? owner : undefined
    // Between two looks it may have had an owner for a moment.
    if (seen.owner !== undefined || seen.segment !== segment) seen.freeSinceMs = undefined
    if (seen.owner === undefined) seen.freeSinceMs ??= steadyClock()
    seen.segment = segment
    return seen.owner === undefined || seen.owner !== before
  }
}
