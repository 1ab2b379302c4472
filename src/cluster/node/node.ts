import { hostname } from 'node:os'
import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { machineClock } from '../../base/clock.js'
import { clusterOf } from '../../data/cluster-origin.js'
import type { DataDirectory } from '../../data/directory.js'
import { endedIncarnation, noteIncarnation } from '../../data/last-start.js'
import { linkKeyOf, rowSecretOf } from '../../data/derived-keys.js'
import { HEARTBEATS_PER_LEASE, LEASE_MARGIN } from '../members/lease.js'
import type { Member } from '../members/member.js'
import { Membership } from '../members/membership.js'
import { type SharedSettings, encodeSettings, leaseMsOf } from '../members/node-report.js'
import { ClusterLogThread } from './log-thread.js'
import { unknownOwner } from '../members/placement.js'
import type { ClusterAccess } from '../../dispatch/threads/shard-port.js'
import { clusterFormat } from '../database/facts.js'
import { knownEndPath } from '../database/known-end.js'
import { clusterTables } from '../database/statements.js'
import { listenForLinks, type LinkServer } from '../links/sockets.js'
import { describeDatabaseError } from '../database/database-errors.js'
import { type ClusterFigures, noClusterFigures } from '../../protocol/cluster-log-messages.js'
import type { ConfirmedClock } from '../../protocol/confirmed-clock.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import type { ClusterConfig } from '../../settings/cluster.js'
import { type StartedNode, ClusterRow, logFaults } from './row.js'
import { OutageLog } from './outage-log.js'
import { OwnChecks } from './own-checks.js'
import { OwnDatabase } from './own-database.js'
import { ClusterShards, type ClusterShardsParts } from './shards.js'
import type { HostStatus, PeerAddress, PeerNotices } from '../host.js'
import { LinkOwner, type LinkOwnerParts } from '../links/link-owner.js'
import type { Peers } from '../links/peers.js'

/** Dependencies of a node. */
export interface NodeParts {
  settings: ClusterConfig
  /** The address at which clients reach this node. */
  address: string
  /** Settings that must be equal on all nodes. */
  sharedSettings: SharedSettings
  directory: DataDirectory
  log: Logger
  /** Another node has replaced this one, or the thread of the log has ended: the process must end. */
  lost(reason: string): void
}

/** What a node needs to take over shards. */
export interface BeginParts extends Pick<LinkOwnerParts, 'calls'> {
  status: HostStatus
  /** The links of the main thread to other nodes. */
  peers: Peers
  /** Operations on the shards of this process. */
  shards: Pick<ClusterShardsParts, 'threads' | 'releaseReaders' | 'leaving'>
}

/**
 * A node of a cluster (docs/adr/0046-members-of-a-cluster.md). The live nodes share the shards, and each
 * accepts requests for all of them. A node whose heartbeats are not confirmed for the length of a lease
 * answers nothing from its shards, because another node may have replaced it. For the shards of other nodes
 * it continues to answer over its links (docs/adr/0047-links.md).
 */
export class ClusterNode implements ClusterAccess {
  readonly #parts: NodeParts
  /** Shared with the threads of this node. */
  readonly lease = new LeaseMemory()
  readonly #membership: Membership
  /** The address at which other nodes reach this one. */
  #linkAddress = ''
  #links: LinkServer | undefined
  #owner: LinkOwner | undefined
  #thread: ClusterLogThread | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #trouble: OutageLog
  readonly #checks: OwnChecks
  readonly #database: OwnDatabase
  #begun: StartedNode | undefined
  readonly #row: ClusterRow
  /** Called when the set of other live nodes changes. */
  #peerListeners: ((notices: PeerNotices) => void)[] = []
  /** The last notified set of other nodes, as text. */
  #lastNotified = ''

  constructor(parts: NodeParts) {
    this.#parts = parts
    const { settings, address, sharedSettings, directory, lost, log } = parts
    const { urls, node, leaseSecs } = settings
    this.#database = new OwnDatabase({ urls, secret: rowSecretOf(directory), log })
    this.#row = new ClusterRow(node, leaseSecs * 1_000)
    this.#trouble = new OutageLog(this.lease, log)
    this.#membership = new Membership({
      about: {
        node,
        address,
        formatMax: clusterFormat,
        settingsDigest: encodeSettings(leaseSecs, sharedSettings),
      },
      leaseMs: leaseSecs * 1_000,
      leaseMsOf,
      lease: this.lease,
      nowMs: machineClock,
      connect: () => this.#database.connect(),
      changed: (members) => this.#onMembersChanged(members),
      answers: ({ node: name, incarnation }) => {
        const peers = this.#begun?.peers
        return peers?.reaches(name, incarnation) === true || peers?.isElsewhere(name) === true
      },
      trouble: (error) => this.#trouble.heartbeatFailed(error),
      faultsChanged: (faults) => logFaults(faults, log),
      expelled: lost,
    })
    this.#checks = new OwnChecks({
      settings,
      membership: this.#membership,
      log,
      leave: () => this.stepDown(limits.clusterMoveMs).then(() => this.leave()),
      lost,
    })
  }

  /**
   * Joins the cluster.
   * @throws Error where a node of this name is alive, or the database cannot be reached
   */
  async join(): Promise<void> {
    const { settings, directory, lost } = this.#parts
    const { urls, node, leaseSecs } = settings
    const graceMs = leaseSecs * 1_000 * LEASE_MARGIN
    try {
      await this.#listen()
      this.#updateReport()
      const incarnation = await this.#membership.join(endedIncarnation(directory.path, node))
      noteIncarnation(directory.path, { node, incarnation })
      await this.#membership.step()
      await this.#checks.atJoin()
    } catch (error) {
      throw new Error(`The node ${node} cannot join its cluster: ${describeDatabaseError(error)}`, {
        cause: error,
      })
    }
    this.#membership.start()
    this.#timer = setInterval(
      () => {
        // A node that refuses to serve has no lease, although the database can be reached.
        if (!this.refuses) this.#trouble.step()
        this.#checks.look()
        this.#updateReport()
        this.#notifyPeers()
      },
      (leaseSecs * 1_000) / HEARTBEATS_PER_LEASE,
    )
    this.#thread = new ClusterLogThread(
      {
        urls: [...urls],
        tables: clusterTables,
        identity: this.#database.identity,
        rows: rowSecretOf(directory),
        takeOverDelayMs: graceMs,
      },
      (error) => lost(`the thread of the cluster’s log ended: ${error.message}`),
      (shard) => knownEndPath(directory.path, shard),
    )
  }

  /** Whether another node is alive, which may own shards. */
  get hasOthers(): boolean {
    return this.#membership.members.length > 1
  }

  /** Starts taking a share of the shards, and accepting links of other nodes to them. */
  begin({ calls, status, peers, shards }: BeginParts): void {
    const { directory, log, lost, settings } = this.#parts
    const { node, leaseSecs, copies } = settings
    const owner = new LinkOwner({
      calls,
      threads: shards.threads,
      status,
      lease: this.lease,
      linkLeaseMs: Math.min(limits.linkLeaseMs, (leaseSecs * 1_000) / 2),
      own: { node, incarnation: this.#membership.incarnation },
      isMember: async ({ node: name, incarnation }) =>
        (await this.#membership.look()).some((one) => one.node === name && one.incarnation === incarnation),
      log,
    })
    this.#owner = owner
    const own = new ClusterShards({
      directory,
      log,
      lost,
      refuse: (reason) => this.#refuse(reason),
      node,
      leaseMs: leaseSecs * 1_000,
      lease: this.lease,
      copies,
      channelOf: (shard) => this.#logThread.channelOf(shard),
      alive: () => this.#row.candidates(this.members),
      ...shards,
      reaches: (name, incarnation) => peers.reaches(name, incarnation),
      servedBy(shard) {
        const link = peers.of(shard)
        return link?.isUp === true ? link.node : undefined
      },
      isElsewhere: () => peers.isElsewhere(),
      isServed: (shard) => shards.threads.shards.leaseRefusal(shard) === undefined,
      async leaving(shard) {
        await Promise.all([shards.leaving(shard), owner.leaving(shard)])
      },
      offer: (to, shard) => owner.offer(to, shard),
    })
    this.#begun = { shards: own, peers, status }
    this.followPeers((notices) => peers.follow(notices))
    own.begin(!this.hasOthers)
  }

  /** Passes the set of other live nodes to a front, now and whenever it changes. */
  followPeers(follow: (notices: PeerNotices) => void): void {
    this.#peerListeners.push(follow)
    follow(this.#peerNotices())
  }

  /** Another node offers a shard to this one. */
  offered(shard: number): void {
    this.#begun?.shards.offered(shard)
  }

  /** Another node is about to release all its shards. */
  peerStopping(peer: PeerAddress): void {
    this.#row.markStopping(peer)
  }

  /** The shards that this node owns. */
  get owned(): number[] {
    return this.#begun?.shards.owned ?? []
  }

  /** Whether it refuses to serve. */
  get refuses(): boolean {
    return this.#begun?.refusedFor !== undefined
  }

  /** The refusal of requests while this node does not reach all shards. */
  get refusal(): Refusal {
    const away = this.#begun?.shards.owners.find(
      (name) =>
        name !== this.name && name !== unknownOwner && this.#begun?.peers.open.has(name ?? '') !== true,
    )
    const owner = this.members.find(({ node }) => node === away)
    const where = owner === undefined ? '' : `: the node ${owner.node} on ${owner.address} serves`
    const serving = owner && { node: owner.node, address: owner.address }
    return refuse('unavailable', `This node of the cluster is a standby${where}`, {
      retryAfterSecs: 1,
      extra: { stands_by: true, ...(serving && { serving }) },
    })
  }

  /** The live nodes, as this one knows them. */
  get members(): readonly Member[] {
    return this.#membership.members
  }

  /**
   * The time within which others take over from a failed node, milliseconds: 1.1 to 1.3 leases, and the time
   * to open the logs.
   */
  get takeOverMs(): number {
    return 2 * this.#parts.settings.leaseSecs * 1_000
  }

  /** The nodes as this one has last read them. */
  get nodes(): Membership {
    return this.#membership
  }

  get name(): string {
    return this.#parts.settings.node
  }

  /** A shard has a new thread. */
  replaced(shard: number): void {
    this.#owner?.replaced(shard)
  }

  /** Releases all shards. @param timeMs extra time, so that shards are transferred one by one */
  async stepDown(timeMs: number): Promise<void> {
    this.#owner?.announceStop()
    await this.#begun?.shards.stop(timeMs)
  }

  /** Leaves the cluster, so that others take over immediately. Call it after the shards have ended. */
  async leave(): Promise<void> {
    await this.stepDown(0)
    this.#begun?.peers.close()
    this.#owner?.close()
    this.#owner = undefined
    this.#links?.close()
    clearInterval(this.#timer)
    await this.#thread?.close()
    try {
      await this.#membership.leave()
    } catch (error) {
      // The others wait until the lease has expired.
      this.#parts.log.warn({ err: error }, 'could not announce to the cluster that this node has stopped')
    }
  }

  async abandon(): Promise<void> {
    this.#thread?.abort()
    await Promise.all([this.#begun?.shards.unfollow(), this.#thread?.close()])
  }

  get figures(): ClusterFigures {
    return {
      ...(this.#thread?.figures ?? noClusterFigures),
      mayAnswer: this.lease.holds(),
      owned: this.owned.length,
      members: this.#membership.members.length,
      lagSecs: this.#begun?.shards.lagSecs ?? 0,
    }
  }

  /** The time of day that the threads of this node follow. */
  get clock(): ConfirmedClock {
    return this.#checks.clock
  }

  channelsOf: ClusterAccess['channelsOf'] = (shard) =>
    this.#logThread.channelsOf(shard, {
      cluster: clusterOf(this.#parts.directory),
      writer: { node: this.#parts.settings.node, incarnation: this.#membership.incarnation },
      clock: this.clock.memory,
    })

  /** Listens for links before the address is published. */
  async #listen(): Promise<void> {
    const { log, settings } = this.#parts
    const { listen, linkAddress } = settings
    const failed = (error: Error) => log.error({ err: error }, 'could not accept a link of another node')
    this.#links = await listenForLinks({ ...listen, key: this.#key, failed }, (sockets) => {
      if (this.#owner !== undefined) this.#owner.take(sockets)
      else for (const socket of Object.values(sockets)) socket.destroy()
    })
    const { port } = this.#links
    const shownPort = linkAddress === undefined || linkAddress.port === 0 ? port : linkAddress.port
    this.#linkAddress = `${linkAddress?.host ?? hostname()}:${shownPort}`
  }

  /** Releases all shards, and refuses all requests with the reason until the process is restarted. */
  #refuse(reason: string): void {
    if (this.refuses || this.#begun === undefined) return
    this.#begun.refusedFor = reason
    this.#begun.status.refuseAll(refuse('unavailable', reason))
    const { log } = this.#parts
    log.fatal({ reason }, 'this node of the cluster refuses to serve')
    void this.stepDown(0)
      .catch((error: unknown) => log.error({ err: error }, 'could not release the shards of this node'))
      .finally(() => this.lease.end())
  }

  get #key(): Buffer {
    return linkKeyOf(this.#parts.directory.masterSeed)
  }

  get #logThread(): ClusterLogThread {
    if (this.#thread === undefined) throw new Error('The node has not joined yet')
    return this.#thread
  }

  /** Updates the report that the next heartbeat sends. */
  #updateReport(): void {
    const own = { link: this.#linkAddress, clockAheadMs: this.#membership.clock?.aheadMs }
    this.#membership.report = this.#row.text(own, this.members, this.#begun)
    this.#begun?.shards.step()
  }

  #peerNotices(): PeerNotices {
    const own = { node: this.name, incarnation: this.#membership.incarnation, key: this.#key }
    return { own, peers: this.#row.peers(this.members) }
  }

  /** The link address of a node is published with its first heartbeat, which follows its join. */
  #notifyPeers(): void {
    const notices = this.#peerNotices()
    const text = notices.peers.map((peer) => Object.values(peer).join(' ')).join()
    if (text === this.#lastNotified) return
    this.#lastNotified = text
    for (const follow of this.#peerListeners) follow(notices)
  }

  #onMembersChanged(members: readonly Member[]): void {
    const { log } = this.#parts
    log.info({ nodes: members.map((one) => one.node) }, 'nodes of the cluster')
    this.#notifyPeers()
    this.#begun?.shards.step()
    this.#checks.compareSettings(members)
  }
}
