import { hostname } from 'node:os'
import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { machineClock } from '../../base/clock.js'
import { clusterOf } from '../../data/cluster-origin.js'
import type { DataDirectory } from '../../data/directory.js'
import { endedIncarnation, noteIncarnation } from '../../data/last-start.js'
import { linkKeyOf, rowSecretOf } from '../../data/derived-keys.js'
import { BEATS_PER_LEASE, LEASE_MARGIN } from '../members/lease.js'
import { type Member, Membership, type RowFault } from '../members/membership.js'
import { type AlikeSettings, differences, leaseMsOf, tellSettings } from '../members/settings-digest.js'
import { ClusterLogThread } from './log-thread.js'
import { unknownOwner } from '../members/placement.js'
import type { ClusterOwner } from '../../dispatch/threads/shard-port.js'
import { clusterFormat } from '../database/facts.js'
import { knownEndPath } from '../database/known-end.js'
import { NodeTable } from '../database/nodes.js'
import { openLasting } from '../database/server-check.js'
import { clusterTables, statementsOf } from '../database/statements.js'
import { listenForLinks, type LinkServer } from '../links/sockets.js'
import { describeTrouble } from '../database/trouble.js'
import { type ClusterFigures, noClusterFigures } from '../../protocol/cluster-log-messages.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import type { ClusterConfig } from '../../settings/cluster.js'
import { type Begun, ClusterRow, tellFaults } from './row.js'
import { ClusterTrouble } from './trouble.js'
import { ClusterShards, type ClusterShardsParts } from './shards.js'
import type { Fronts } from '../../server/fronts/fronts.js'
import type { PeerPlace, PeersTold } from '../../server/calls/front-messages.js'
import { LinkOwner, type LinkOwnerParts } from '../links/link-owner.js'
import type { Peers } from '../links/peers.js'

const statements = statementsOf(clusterTables)

/** What a node is made of. */
export interface NodeParts {
  settings: ClusterConfig
  /** Where clients reach this node. */
  address: string
  /** Settings that other nodes have to have alike. */
  alike: AlikeSettings
  directory: DataDirectory
  log: Logger
  /** Another node has its place, or the thread of the log has ended: the process has to end. */
  lost(reason: string): void
}

/** What a node begins to take shards with. */
export interface BeginParts extends Pick<LinkOwnerParts, 'calls' | 'standing'> {
  /** Links of the main thread to other nodes. */
  peers: Peers
  /** What is done to the shards of this process. */
  shards: Pick<ClusterShardsParts, 'threads' | 'letGo' | 'leaving'>
}

/**
 * A node of a cluster (docs/adr/0046-members-of-a-cluster.md). Those that are alive share the shards, and each takes requests for
 * all. While none of its beats is confirmed for as long as a lease it answers nothing: another one may have taken its place.
 */
export class ClusterNode implements ClusterOwner {
  readonly #parts: NodeParts
  /** The threads of this node see it too. */
  readonly lease = new LeaseMemory()
  readonly #membership: Membership
  /** Where other nodes reach this one, and what becomes of their connections while it owns the shards. */
  #linkPlace = ''
  #links: LinkServer | undefined
  #owner: LinkOwner | undefined
  #thread: ClusterLogThread | undefined
  #looks: NodeJS.Timeout | undefined
  readonly #trouble: ClusterTrouble
  #differences = ''
  #isReplicated: boolean | undefined
  #begun: Begun | undefined
  readonly #row: ClusterRow
  /** Told of the other nodes that are alive. */
  #followers: ((told: PeersTold) => void)[] = []
  /** The others as they were told of last. */
  #toldPeers = ''

  constructor(parts: NodeParts) {
    this.#parts = parts
    const { settings, address, alike, lost, log } = parts
    const { urls, node, leaseSecs } = settings
    this.#row = new ClusterRow(node, leaseSecs * 1_000)
    this.#trouble = new ClusterTrouble(this.lease, log)
    this.#membership = new Membership({
      about: {
        node,
        address,
        formatMax: clusterFormat,
        settingsDigest: tellSettings(leaseSecs, alike),
      },
      leaseMs: leaseSecs * 1_000,
      leaseMsOf,
      lease: this.lease,
      nowMs: machineClock,
      connect: () => this.#connect(urls),
      changed: (members) => this.#tellMembers(members),
      answers: ({ node: name, incarnation }) => this.#begun?.peers.reaches(name, incarnation) === true,
      trouble: (error) => this.#trouble.tell(error),
      distrusts: (faults) => tellFaults(faults, log),
      expelled: lost,
    })
  }

  /**
   * Joins the cluster.
   * @throws Error where a node of this name is alive, or the database cannot be reached
   */
  async join(): Promise<void> {
    const { settings, directory, lost } = this.#parts
    const { urls, node, leaseSecs } = settings
    const patienceMs = leaseSecs * 1_000 * LEASE_MARGIN
    try {
      await this.#listen()
      this.#tellOwn()
      const incarnation = await this.#membership.join(endedIncarnation(directory.path, node))
      noteIncarnation(directory.path, { node, incarnation })
      await this.#membership.step()
    } catch (error) {
      throw new Error(`The node ${node} cannot join its cluster: ${describeTrouble(error)}`, { cause: error })
    }
    this.#membership.start()
    this.#looks = setInterval(
      () => {
        this.#trouble.step()
        this.#tellOwn()
        this.#tellPeers()
      },
      (leaseSecs * 1_000) / BEATS_PER_LEASE,
    )
    this.#thread = new ClusterLogThread(
      { urls: [...urls], tables: clusterTables, rows: rowSecretOf(directory), patienceMs },
      (error) => lost(`the thread of the cluster’s log ended: ${error.message}`),
      (shard) => knownEndPath(directory.path, shard),
    )
  }

  /** Whether another node is alive, which may own shards. */
  get hasOthers(): boolean {
    return this.#membership.members.length > 1
  }

  /** Takes its share of the shards from now on, and links of other nodes to them. */
  begin({ calls, standing, peers, shards }: BeginParts): void {
    const { directory, log, lost, settings } = this.#parts
    const { node, leaseSecs, copies } = settings
    const owner = new LinkOwner({
      calls,
      threads: shards.threads,
      standing,
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
      lineOf: (shard) => this.#logThread.lineOf(shard),
      alive: () => this.#row.candidates(this.members),
      ...shards,
      reaches: (name, incarnation) => peers.reaches(name, incarnation),
      isServed: (shard) => shards.threads.shards.leaseRefusal(shard) === undefined,
      async leaving(shard) {
        await Promise.all([shards.leaving(shard), owner.leaving(shard)])
      },
      offer: (to, shard) => owner.offer(to, shard),
    })
    this.#begun = { shards: own, peers, standing }
    this.tellPeers((told) => peers.follow(told))
    own.begin(!this.hasOthers)
  }

  /** Has a front told which other nodes are alive, now and when they change. */
  tellPeers(follow: (told: PeersTold) => void): void {
    this.#followers.push(follow)
    follow(this.#peersTold())
  }

  /** The same for the fronts of other threads. */
  async tellFronts(fronts: Fronts): Promise<void> {
    const failed = (error: unknown) =>
      this.#parts.log.warn({ err: error }, 'a front could not be told of peers')
    this.tellPeers((told) => void fronts.followPeers(told).catch(failed))
    await fronts.untilCurrent()
  }

  /** Another node wants this one to have a shard. */
  offered(shard: number): void {
    this.#begun?.shards.offered(shard)
  }

  /** Another node is about to give all its shards up. */
  stops(place: PeerPlace): void {
    this.#row.stops(place)
  }

  /** Numbers of the shards that this node owns. */
  get owned(): number[] {
    return this.#begun?.shards.owned ?? []
  }

  /** Whether it serves nothing any more. */
  get refuses(): boolean {
    return this.#begun?.refusedFor !== undefined
  }

  /** Why this node answers nothing, before it reaches all shards. */
  get refusal(): Refusal {
    const away = this.#begun?.shards.owners.find(
      (name) =>
        name !== this.name && name !== unknownOwner && this.#begun?.peers.open.has(name ?? '') !== true,
    )
    const owner = this.members.find(({ node }) => node === away)
    const where = owner === undefined ? '' : `: the node ${owner.node} on ${owner.address} serves`
    const serving = owner && { node: owner.node, address: owner.address }
    return refuse('unavailable', `This node of the cluster stands by${where}`, {
      retryAfterSecs: 1,
      extra: { stands_by: true, ...(serving && { serving }) },
    })
  }

  /** The nodes that are alive, as this one knows. */
  get members(): readonly Member[] {
    return this.#membership.members
  }

  /** Within which others take over from a node that died, milliseconds: 1.1 to 1.3 leases, and some time to open the logs. */
  get takeOverMs(): number {
    return 2 * this.#parts.settings.leaseSecs * 1_000
  }

  /** Rows of the table of nodes that are not believed. */
  get faults(): readonly RowFault[] {
    return this.#membership.faults
  }

  /** The name of this node. */
  get name(): string {
    return this.#parts.settings.node
  }

  /** A shard has a new thread. */
  replaced(shard: number): void {
    this.#owner?.replaced(shard)
  }

  /** Gives all shards up. @param timeMs how long that may take longer than it must, so that requests for them wait for less long */
  async giveUp(timeMs: number): Promise<void> {
    this.#owner?.stops()
    await this.#begun?.shards.stop(timeMs)
  }

  /** Lets others take the shards over at once. To be called when those have ended. */
  async leave(): Promise<void> {
    await this.giveUp(0)
    this.#begun?.peers.close()
    this.#owner?.close()
    this.#owner = undefined
    this.#links?.close()
    clearInterval(this.#looks)
    await this.#thread?.close()
    try {
      await this.#membership.leave()
    } catch (error) {
      // Others wait for as long as a lease then.
      this.#parts.log.warn({ err: error }, 'the cluster could not be told that this node has stopped')
    }
  }

  async abandon(): Promise<void> {
    this.#thread?.giveUp()
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

  linesOf: ClusterOwner['linesOf'] = (shard) =>
    this.#logThread.linesOf(shard, {
      cluster: clusterOf(this.#parts.directory),
      writer: { node: this.#parts.settings.node, incarnation: this.#membership.incarnation },
    })

  /** Another server than before may take the writes. */
  async #connect(urls: readonly string[]): Promise<NodeTable> {
    const { session, server } = await openLasting(urls)
    if (this.#isReplicated === true && !server.replicated)
      this.#parts.log.warn(
        'no commit of the cluster’s database waits for a standby any more: what is answered now is lost with its disk',
      )
    this.#isReplicated = server.replicated
    return new NodeTable(session, statements, { secret: rowSecretOf(this.#parts.directory) })
  }

  /** Takes links of other nodes, before those are told where. */
  async #listen(): Promise<void> {
    const { log, settings } = this.#parts
    const { listen, linkAddress } = settings
    const failed = (error: Error) => log.error({ err: error }, 'a link of another node could not be taken')
    this.#links = await listenForLinks({ ...listen, key: this.#key, failed }, (sockets) => {
      if (this.#owner !== undefined) this.#owner.take(sockets)
      else for (const socket of Object.values(sockets)) socket.destroy()
    })
    const { port } = this.#links
    const shownPort = linkAddress === undefined || linkAddress.port === 0 ? port : linkAddress.port
    this.#linkPlace = `${linkAddress?.host ?? hostname()}:${shownPort}`
  }

  /** Gives all shards up and answers nothing any more, but for why: until the process is started again. */
  #refuse(reason: string): void {
    if (this.refuses || this.#begun === undefined) return
    this.#begun.refusedFor = reason
    this.#begun.standing.refuseAll(refuse('unavailable', reason))
    const { log } = this.#parts
    log.fatal({ reason }, 'this node of the cluster refuses to serve')
    void this.giveUp(0)
      .catch((error: unknown) => log.error({ err: error }, 'the shards of this node could not be given up'))
      .finally(() => this.lease.end())
  }

  get #key(): Buffer {
    return linkKeyOf(this.#parts.directory.masterSeed)
  }

  get #logThread(): ClusterLogThread {
    if (this.#thread === undefined) throw new Error('Expected the node to have joined')
    return this.#thread
  }

  /** Goes with the next beat. */
  #tellOwn(): void {
    this.#membership.owns = this.#row.text(this.#linkPlace, this.members, this.#begun)
    this.#begun?.shards.step()
  }

  #peersTold(): PeersTold {
    const own = { node: this.name, incarnation: this.#membership.incarnation, key: this.#key }
    return { own, peers: this.#row.peers(this.members) }
  }

  /** Where a node takes links goes with its first beat, which comes after it has joined. */
  #tellPeers(): void {
    const told = this.#peersTold()
    const text = told.peers.map((peer) => Object.values(peer).join(' ')).join()
    if (text === this.#toldPeers) return
    this.#toldPeers = text
    for (const follow of this.#followers) follow(told)
  }

  #tellMembers(members: readonly Member[]): void {
    const { log } = this.#parts
    log.info({ nodes: members.map((one) => one.node) }, 'nodes of the cluster')
    this.#tellPeers()
    this.#begun?.shards.step()
    const found = differences(members)
    if (found.length > 0 && found.join() !== this.#differences)
      log.warn({ differences: found }, 'nodes of the cluster have different settings')
    this.#differences = found.join()
  }
}
