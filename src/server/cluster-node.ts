import { hostname } from 'node:os'
import { join } from 'node:path'
import { readIfThere, writeDurably } from '../base/durable-file.js'
import { limits } from '../base/limits.js'
import type { Logger } from '../base/log.js'
import { systemClock } from '../base/clock.js'
import { machineClock } from '../base/machine-clock.js'
import { version } from '../base/version.js'
import type { DataDirectory } from '../data-directory/data-directory.js'
import { linkKeyOf } from '../data-directory/link-key.js'
import { BEATS_PER_LEASE } from '../dispatch/cluster/lease.js'
import { type Member, Membership } from '../dispatch/cluster/membership.js'
import {
  type AlikeSettings,
  differences,
  leaseMsOf,
  tellOwn,
  tellSettings,
} from '../dispatch/cluster/told.js'
import { ClusterLogThread } from '../dispatch/cluster-log-thread.js'
import type { ClusterOwner } from '../dispatch/shard-threads.js'
import { clusterFormat } from '../outbound/cluster/facts.js'
import { NodeTable } from '../outbound/cluster/nodes.js'
import { openLasting } from '../outbound/cluster/server-check.js'
import { clusterTables, statementsOf } from '../outbound/cluster/statements.js'
import { listenForLinks, type LinkServer } from '../outbound/link/link.js'
import { describeTrouble } from '../outbound/cluster/trouble.js'
import { type ClusterFigures, noClusterFigures } from '../protocol/cluster-log-messages.js'
import { LeaseMemory } from '../protocol/lease-memory.js'
import type { ClusterConfig } from '../settings/cluster.js'
import type { ClusterFrontParts } from './cluster-front.js'
import { StandBy } from './cluster-stand-by.js'
import { LinkOwner } from './link-owner.js'
import type { MainCallParts } from './main-calls.js'
import type { Standing } from './state.js'

/** The file in a data directory that says as which incarnation of which node it was used last. */
const incarnationFile = 'node.incarnation'

/** Beats without a failure after which one is an outage of its own. */
const QUIET_TICKS = 2

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

/**
 * A node of a cluster (docs/adr/0046-members-of-a-cluster.md). One of those that are alive owns all shards and serves; the
 * others stand by. While none of its beats is confirmed for as long as a lease it answers nothing: another one may have
 * taken its place.
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
  #isCutOff = false
  /** Ticks until a beat that fails is told of again. */
  #quietTicks = 0
  #toldTrouble = ''
  #servesSinceMs: number | undefined
  #differences = ''
  #isReplicated: boolean | undefined
  #standBy: StandBy | undefined

  constructor(parts: NodeParts) {
    this.#parts = parts
    const { settings, address, alike, lost } = parts
    const { urls, node, leaseSecs } = settings
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
      trouble: (error) => this.#tellTrouble(error),
      expelled: () => lost('another node of the cluster has taken the place of this one'),
    })
  }

  /**
   * Joins the cluster.
   * @throws Error where a node of this name is alive, or the database cannot be reached
   */
  async join(): Promise<void> {
    const { settings, directory, lost } = this.#parts
    const { urls, node, leaseSecs } = settings
    const file = join(directory.path, incarnationFile)
    try {
      await this.#listen()
      this.#tellOwn()
      const incarnation = await this.#membership.join(endedOf(readIfThere(file), node))
      writeDurably(file, `${node} ${incarnation}\n`)
      await this.#membership.step()
    } catch (error) {
      throw new Error(`The node ${node} cannot join its cluster: ${describeTrouble(error)}`, { cause: error })
    }
    this.#membership.start()
    this.#looks = setInterval(
      () => {
        this.#quietTicks -= 1
        this.#tellCutOff()
        this.#tellOwn()
      },
      (leaseSecs * 1_000) / BEATS_PER_LEASE,
    )
    this.#thread = new ClusterLogThread({ urls: [...urls], tables: clusterTables }, (error) =>
      lost(`the thread of the cluster’s log ended: ${error.message}`),
    )
  }

  /** Whether another node is alive, which may own the shards. */
  get hasOthers(): boolean {
    return this.#membership.members.length > 1
  }

  /** Follows the logs until the shards are this node's to open. */
  standBy(front: Omit<ClusterFrontParts, 'node' | 'incarnation' | 'key' | 'log'>): StandBy {
    const { directory, log, lost, settings } = this.#parts
    const { incarnation } = this.#membership
    const standBy = new StandBy({
      front: { ...front, node: settings.node, incarnation, key: this.#key, log },
      directory,
      log,
      lost,
      node: settings.node,
      lineOf: (shard) => this.#logThread.lineOf(shard),
      members: () => this.#membership.members,
    })
    this.#standBy = standBy
    return standBy
  }

  /** The shards are open: other nodes may take requests for them. */
  serves(main: MainCallParts, standing: Standing): void {
    this.#servesSinceMs = systemClock()
    this.#tellOwn()
    const membership = this.#membership
    const leaseMs = this.#parts.settings.leaseSecs * 1_000
    this.#owner = new LinkOwner({
      main,
      standing,
      lease: this.lease,
      linkLeaseMs: Math.min(limits.linkLeaseMs, leaseMs / 2),
      async isMember(node, incarnation) {
        const alive = await membership.look()
        return alive.some((one) => one.node === node && one.incarnation === incarnation)
      },
      log: this.#parts.log,
    })
  }

  /** The nodes that are alive, as this one knows. */
  get members(): readonly Member[] {
    return this.#membership.members
  }

  /** The name of this node. */
  get name(): string {
    return this.#parts.settings.node
  }

  /** When keys were last used at other nodes that take requests for this one. */
  async lastUses(keyIds: readonly string[]): Promise<number[][]> {
    return (await this.#owner?.lastUses(keyIds)) ?? []
  }

  /** A shard has a new thread. */
  replaced(shard: number): void {
    this.#owner?.replaced(shard)
  }

  /** Other nodes take no new requests for this one. */
  stopping(): void {
    this.#owner?.stop()
  }

  /** Lets others take the shards over at once. To be called when those have ended. */
  async leave(): Promise<void> {
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

  async unfollow(): Promise<void> {
    await this.#standBy?.unfollow()
  }

  get figures(): ClusterFigures {
    const serving = this.#servesSinceMs !== undefined
    return {
      ...(this.#thread?.figures ?? noClusterFigures),
      mayAnswer: this.lease.holds(),
      serving,
      members: this.#membership.members.length,
      lagSecs: serving ? 0 : (this.#standBy?.lagSecs ?? 0),
    }
  }

  linesOf: ClusterOwner['linesOf'] = (shard) =>
    this.#logThread.linesOf(shard, {
      node: this.#parts.settings.node,
      incarnation: this.#membership.incarnation,
    })

  /** Another server than before may take the writes. */
  async #connect(urls: readonly string[]): Promise<NodeTable> {
    const { session, server } = await openLasting(urls)
    if (this.#isReplicated === true && !server.replicated)
      this.#parts.log.warn(
        'no commit of the cluster’s database waits for a standby any more: what is answered now is lost with its disk',
      )
    this.#isReplicated = server.replicated
    return new NodeTable(session, statements)
  }

  /** Takes links of other nodes, before those are told where. */
  async #listen(): Promise<void> {
    const { listen, linkAddress } = this.#parts.settings
    this.#links = await listenForLinks({ ...listen, key: this.#key }, (socket) => {
      if (this.#owner === undefined) socket.destroy()
      else this.#owner.take(socket)
    })
    const { port } = this.#links
    const shownPort = linkAddress === undefined || linkAddress.port === 0 ? port : linkAddress.port
    this.#linkPlace = `${linkAddress?.host ?? hostname()}:${shownPort}`
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
    const servesSinceMs = this.#servesSinceMs
    const lagSecs = servesSinceMs === undefined ? this.#standBy?.lagSecs : undefined
    this.#membership.owns = tellOwn({ version, link: this.#linkPlace, servesSinceMs, lagSecs })
  }

  #tellMembers(members: readonly Member[]): void {
    const { log } = this.#parts
    log.info({ nodes: members.map((one) => one.node) }, 'nodes of the cluster')
    const found = differences(members)
    if (found.length > 0 && found.join() !== this.#differences)
      log.warn({ differences: found }, 'nodes of the cluster have different settings')
    this.#differences = found.join()
  }

  /** Once for each outage and reason: a beat is tried often. */
  #tellTrouble(error: unknown): void {
    const reason = describeTrouble(error)
    const isTold = this.#quietTicks > 0 && reason === this.#toldTrouble
    this.#quietTicks = QUIET_TICKS
    if (isTold || !this.lease.holds()) return
    this.#toldTrouble = reason
    this.#parts.log.warn({ reason }, 'a beat did not reach the database of the cluster: it is tried again')
  }

  #tellCutOff(): void {
    const isCutOff = !this.lease.holds()
    if (isCutOff === this.#isCutOff) return
    this.#isCutOff = isCutOff
    const { log } = this.#parts
    if (isCutOff) log.error('the database of the cluster cannot be reached: answering nothing until it can')
    else log.warn('the database of the cluster can be reached again')
  }
}

/** The incarnation of a node whose process ran on this directory, which this one has locked: so that has ended. */
function endedOf(kept: string | undefined, node: string): number | undefined {
  const [name, incarnation] = kept?.trim().split(' ') ?? []
  return name === node ? Number(incarnation) : undefined
}
