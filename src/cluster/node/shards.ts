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
import type { LogChannel } from '../../protocol/cluster-log-messages.js'
import type { FollowerReport } from '../../protocol/follower-messages.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'

export interface ClusterShardsParts {
  directory: DataDirectory
  log: Logger
  node: string
  leaseMs: number
  lease: LeaseMemory
  /** How many nodes hold each shard. */
  copies: number
  threads: ShardThreads
  channelOf(shard: number): LogChannel
  /** All live nodes including this one. */
  alive(): readonly Candidate[]
  /** Stops new long reads of a store; resolves when only the thread of the shard has the store open. */
  releaseReaders(shard: number): Promise<void>
  /**
   * Resolves when no front, here or in another node, sends to a shard any more, or admits requests by what it
   * has published.
   */
  leaving(shard: number): Promise<void>
  /** Whether it has a link to another node, with that incarnation if one is given. */
  reaches(node: string, incarnation?: number): boolean
  /** Whether another node has a lease from another database than that of this node. */
  isElsewhere(): boolean
  /** The node that serves a shard over a link to this one, and has a lease. */
  servedBy(shard: number): string | undefined
  /** Whether this node reaches the owner of a shard. */
  isServed(shard: number): boolean
  /** Offers a released shard to a node. */
  offer(node: string, shard: number): void
  /** The log of a shard has lost segments that this node knows to be durable. May be called repeatedly. */
  refuse(reason: string): void
  lost(reason: string): void
}

interface ShardView {
  role: ShardRole
  owner: string | undefined
  /** When the store had caught up with the log, steady clock. */
  atEndMs: number
  /** Since when the shard has had no owner, steady clock. */
  freeSinceMs: number | undefined
  /** The last segment of its log at the last look. */
  segment: number
  /** Until when this node has an offer for the shard, steady clock. */
  offeredUntilMs: number
  /** Not opened before this time, after a failure. */
  pausedUntilMs: number
  /** Since when its store has not been followed, steady clock; Infinity if there is none. */
  unfollowedSinceMs: number
}

/**
 * The shards of a node of a cluster: those that it owns, those that it follows, and the rest
 * (docs/adr/0048-owners-of-shards.md).
 */
export class ClusterShards {
  readonly #parts: ClusterShardsParts
  readonly #views: readonly ShardView[]
  #follower: Follower | undefined
  /** Why the logs of shards cannot be followed. */
  readonly #failing = new Map<number, string>()
  #isStopping = false
  /** When a shard last moved, or this node started, steady clock. */
  #movedAtMs = steadyClock()
  /** Running openings and transfers. */
  readonly #running = new Set<Promise<void>>()

  constructor(parts: ClusterShardsParts) {
    this.#parts = parts
    this.#views = Array.from({ length: parts.directory.shards }, () => ({
      role: 'elsewhere' as const,
      owner: unknownOwner,
      atEndMs: steadyClock(),
      freeSinceMs: undefined,
      segment: 0,
      offeredUntilMs: -Infinity,
      pausedUntilMs: -Infinity,
      unfollowedSinceMs: steadyClock(),
    }))
  }

  /** Opens all shards if this node is alone; otherwise follows the shards that it should hold. */
  begin(isAlone: boolean): void {
    if (isAlone) for (const shard of this.#views.keys()) this.#run(this.#open(shard, false))
    else this.step()
  }

  /** The number of shards. */
  get count(): number {
    return this.#views.length
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  get owned(): number[] {
    return [...this.#views.entries()].filter(([, { role }]) => role === 'owned').map(([shard]) => shard)
  }

  /** The shards that it owns, and those whose stores are up to date with their logs. */
  get held(): number[] {
    const nowMs = steadyClock()
    const isNear = ({ owner, atEndMs }: ShardView) =>
      owner !== unknownOwner && nowMs - atEndMs < this.#parts.leaseMs
    return [...this.#views.entries()]
      .filter(([, view]) => view.role === 'owned' || (view.role === 'followed' && isNear(view)))
      .map(([shard]) => shard)
  }

  /** The owner of each shard, as far as this node knows. */
  get owners(): (string | undefined)[] {
    return this.#views.map((view) => this.#ownerOf(view))
  }

  #ownerOf({ role, owner }: ShardView): string | undefined {
    return role === 'followed' || role === 'elsewhere' ? owner : this.#parts.node
  }

  /** How far the followed stores are behind their logs, seconds. */
  get lagSecs(): number {
    const nowMs = steadyClock()
    const lags = this.#views.filter(({ role }) => role === 'followed').map(({ atEndMs }) => nowMs - atEndMs)
    return Math.max(0, ...lags) / 1_000
  }

  /** The last owner of a shard has released it for this node. */
  offered(shard: number): void {
    const view = this.#views[shard]
    if (view === undefined) return
    view.offeredUntilMs = steadyClock() + limits.shardMoveMs
    if (view.role === 'followed') view.owner = undefined
    this.step()
  }

  /** Decides and starts the next steps. Call it at intervals. */
  step(): void {
    // On a copy of the database, this node must own nothing.
    if (this.#isStopping || this.#parts.isElsewhere()) return
    const { node, alive, copies, leaseMs } = this.#parts
    const nowMs = steadyClock()
    const { open, transfer, follow, unfollow, remove } = nextSteps({
      node,
      alive: alive(),
      copies,
      shards: this.#views.map((view) => ({
        role: view.role,
        owner: this.#ownerOf(view),
        isOffered: view.offeredUntilMs > nowMs,
        freeLeases: view.freeSinceMs === undefined ? 0 : (nowMs - view.freeSinceMs) / leaseMs,
        isStale: nowMs - view.unfollowedSinceMs > limits.clusterStaleStoreMs,
      })),
    })
    for (const shard of follow) this.#follow(shard)
    for (const shard of unfollow) this.#run(this.#unfollow(shard))
    for (const shard of remove) this.#remove(shard)
    for (const shard of open)
      if ((this.#views[shard]?.pausedUntilMs ?? 0) <= nowMs) this.#run(this.#open(shard, true))
    if (transfer !== undefined) this.#run(this.#transfer(transfer.shard, transfer.to))
    if (this.#running.size > 0) this.#movedAtMs = nowMs
    // After a start or a move, other nodes need the processors.
    const isCalm = nowMs - this.#movedAtMs > leaseMs
    if (isCalm && this.owned.length < this.count) this.#parts.threads.keepSpares()
  }

  /**
   * Releases all shards for other nodes, and opens none any more.
   * @param timeMs how long the transfers may wait, in total, until the previous shards are served again
   */
  async stop(timeMs: number): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.#running)
    const { node, alive } = this.#parts
    const others = alive().filter((one) => one.node !== node)
    const next = ownersOf(others, this.#views)
    const owned = this.owned.values()
    // A few at a time: the remaining shards are served until then, and each new owner opens few at a time.
    const untilMs = steadyClock() + timeMs
    const mover = async () => {
      for (const shard of owned) {
        const to = next[shard]
        await this.#release(shard, to)
        if (to !== undefined && this.#parts.reaches(to)) await this.#untilServed(shard, untilMs)
      }
    }
    await Promise.all(Array.from({ length: limits.clusterSpareThreads }, mover))
    await this.#follower?.stop()
  }

  /** Resolves when the follower thread has closed all stores. */
  async unfollow(): Promise<void> {
    this.#isStopping = true
    await this.#follower?.stop()
  }

  #run(work: Promise<void>): void {
    const done = work
      .catch((error: unknown) => this.#parts.log.error({ err: error }, 'could not move a shard'))
      .finally(() => this.#running.delete(done))
    this.#running.add(done)
  }

  #at(shard: number): ShardView {
    const view = this.#views[shard]
    if (view === undefined) throw new Error(`Expected a shard below ${this.#views.length}, got ${shard}`)
    return view
  }

  #follow(shard: number): void {
    const view = this.#at(shard)
    view.owner = unknownOwner
    // A follower thread that loads LMDB while the process exits aborts the process.
    view.role = this.#isStopping ? 'elsewhere' : 'followed'
    if (this.#isStopping) return
    view.freeSinceMs = undefined
    view.atEndMs = steadyClock()
    this.#thread.follow(this.#folderOf(shard), this.#parts.channelOf(shard))
  }

  async #unfollow(shard: number): Promise<void> {
    const view = this.#at(shard)
    view.role = 'elsewhere'
    view.owner = unknownOwner
    view.unfollowedSinceMs = steadyClock()
    await this.#thread.release(shard)
  }

  #remove(shard: number): void {
    this.#at(shard).unfollowedSinceMs = Infinity
    if (!existsSync(this.#folderOf(shard))) return
    this.#parts.log.info({ shard }, 'removed the copy of a shard that other nodes hold')
    this.#thread.remove(this.#folderOf(shard))
  }

  #folderOf(shard: number): string {
    return shardFolder(this.#parts.directory.path, shard)
  }

  /** The follower thread, started when it is first needed. */
  get #thread(): Follower {
    const { directory, lease, leaseMs, lost } = this.#parts
    this.#follower ??= new Follower({
      settings: {
        masterSeed: directory.masterSeed,
        cluster: clusterOf(directory),
        lease: lease.memory,
        leaseMs,
      },
      onReport: (report) => this.#onReport(report),
      died: (error) => lost(`the follower thread ended: ${error.message}`),
    })
    return this.#follower
  }

  async #open(shard: number, isFollowed: boolean): Promise<void> {
    const { threads, log } = this.#parts
    const view = this.#at(shard)
    view.role = 'opening'
    if (isFollowed) await this.#follower?.release(shard)
    try {
      await threads.open(shard)
      view.role = 'owned'
      view.offeredUntilMs = -Infinity
      log.info({ shard }, 'this node owns a shard')
    } catch (error) {
      if (error instanceof Error && hasLostLog(error)) {
        this.#parts.refuse(error.message)
        view.role = 'elsewhere'
        return
      }
      // Another node was faster.
      const isTaken = error instanceof Error && isHeld(error)
      if (!isTaken && !this.#isStopping) log.error({ shard, err: error }, 'could not open a shard: retrying')
      view.pausedUntilMs = steadyClock() + (isTaken ? limits.clusterHeldRetryMs : limits.clusterOpenPauseMs)
      this.#follow(shard)
    }
  }

  async #transfer(shard: number, to: string): Promise<void> {
    this.#parts.log.info({ shard, to }, 'a shard moves to another node')
    const isFree = this.#parts.releaseReaders(shard)
    await this.#release(shard, to)
    await isFree
    this.#follow(shard)
  }

  /** Resolves when another node serves a shard, or the time is over. */
  async #untilServed(shard: number, latestMs: number): Promise<void> {
    const untilMs = Math.min(latestMs, steadyClock() + limits.clusterMoveMs)
    while (!this.#parts.isServed(shard) && steadyClock() < untilMs) await pause(limits.shardMoveCheckMs)
  }

  async #release(shard: number, to: string | undefined): Promise<void> {
    const { threads, leaving, offer } = this.#parts
    this.#at(shard).role = 'leaving'
    threads.leaving(shard)
    await leaving(shard)
    await threads.transfer(shard)
    if (to !== undefined) offer(to, shard)
  }

  #onReport(report: Exclude<FollowerReport, { kind: 'released' }>): void {
    const { log } = this.#parts
    const view = this.#at(report.shard)
    switch (report.kind) {
      case 'atEnd':
        this.#failing.delete(report.shard)
        if (view.role !== 'followed') return
        // Other changes are handled with each heartbeat: a step is expensive, and this report is frequent.
        if (this.#atEnd(view, report)) this.step()
        return
      case 'built':
        log.info(
          { shard: report.shard, place: report.place },
          'built the store of a shard from the log of the cluster',
        )
        return
      case 'lost':
        this.#parts.refuse(report.reason)
        return
      case 'failed':
        // Each new reason: the cause may show only when the log is read again.
        if (this.#failing.get(report.shard) !== report.reason)
          log.error(
            { shard: report.shard, reason: report.reason },
            'the logs of the cluster cannot be followed',
          )
        this.#failing.set(report.shard, report.reason)
    }
  }

  /** @returns whether the shard may be opened, or its owner has changed */
  #atEnd(view: ShardView, report: Extract<FollowerReport, { kind: 'atEnd' }>): boolean {
    const { segment, owner: lastOwner, incarnation, isClosed, isOwned, ageMs } = report
    const before = view.owner
    // A node that confirms over its link that it has a lease still owns its shards, whatever the database
    // says: rows of nodes may be changed, and a log may be cut back to where an earlier owner closed it.
    const isOwner = isOwned || (!isClosed && this.#parts.reaches(lastOwner, incarnation))
    const owner = this.#parts.servedBy(report.shard) ?? (isOwner ? lastOwner : undefined)
    view.atEndMs = steadyClock() - ageMs
    // A shard that this node could not release in order may be opened by this node.
    view.owner = owner === this.#parts.node ? undefined : owner
    // The shard may have had an owner between two looks.
    if (view.owner !== undefined || view.segment !== segment) view.freeSinceMs = undefined
    if (view.owner === undefined) view.freeSinceMs ??= steadyClock()
    view.segment = segment
    return view.owner === undefined || view.owner !== before
  }
}
