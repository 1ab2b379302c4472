import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { steadyClock } from '../base/clock.js'
import { machineClock } from '../base/machine-clock.js'
import { readIfThere, writeDurably } from '../base/durable-file.js'
import type { Logger } from '../base/log.js'
import type { DataDirectory } from '../data-directory/data-directory.js'
import { BEATS_PER_LEASE, Silence } from '../dispatch/cluster/lease.js'
import { ClusterLogThread } from '../dispatch/cluster-log-thread.js'
import type { ClusterOwner } from '../dispatch/shard-threads.js'
import { clusterFormat } from '../outbound/cluster/facts.js'
import { NodeTable, type NodeRow } from '../outbound/cluster/nodes.js'
import { Session } from '../outbound/cluster/session.js'
import { clusterTables, statementsOf } from '../outbound/cluster/statements.js'
import { describeTrouble } from '../outbound/cluster/trouble.js'
import { type ClusterFigures, noClusterFigures } from '../protocol/cluster-log-messages.js'
import { LeaseMemory } from '../protocol/lease-memory.js'
import type { ClusterConfig } from '../settings/cluster.js'

/** The file in a data directory that says as which incarnation of which node it was used last. */
const incarnationFile = 'node.incarnation'

const statements = statementsOf(clusterTables)

/** What a node is made of. */
export interface NodeParts {
  settings: ClusterConfig
  directory: DataDirectory
  log: Logger
  /** Another node has its place, or the thread of the log has ended: the process has to end. */
  lost(reason: string): void
}

/**
 * A node of a cluster, of which one runs at a time. Its beats in the table of nodes keep others from starting, and while
 * none is confirmed for as long as a lease it answers nothing: another one may have taken its place.
 */
export class ClusterNode implements ClusterOwner {
  readonly #parts: NodeParts
  /** The threads of this node see it too. */
  readonly lease = new LeaseMemory()
  readonly #leaseMs: number
  #session: Session | undefined
  #thread: ClusterLogThread | undefined
  #incarnation = 0
  #beating: Promise<void> = Promise.resolve()
  readonly #stop = new AbortController()
  #isCutOff = false

  constructor(parts: NodeParts) {
    this.#parts = parts
    this.#leaseMs = parts.settings.leaseSecs * 1_000
  }

  /**
   * Joins the cluster, as soon as no other node is alive.
   * @throws Error where one is, or the database cannot be reached
   */
  async join(): Promise<void> {
    const { settings, directory, lost } = this.#parts
    const { urls, node } = settings
    try {
      await this.#alone()
      const sentAtMs = machineClock()
      this.#incarnation = (await this.#joined()) ?? 0
      if (this.#incarnation === 0) throw new Error(`Another node joined as ${node} at the same moment`)
      writeDurably(join(directory.path, incarnationFile), `${node} ${this.#incarnation}\n`)
      if (!(await this.#sendBeat())) throw new Error('The database stopped waiting for its standby')
      this.lease.extend(sentAtMs + this.#leaseMs)
    } catch (error) {
      this.#session?.drop()
      throw new Error(`The node ${node} cannot join its cluster: ${describeTrouble(error)}`, { cause: error })
    }
    this.#beating = this.#beatOn()
    this.#thread = new ClusterLogThread({ urls: [...urls], tables: clusterTables }, (error) =>
      lost(`the thread of the cluster’s log ended: ${error.message}`),
    )
  }

  /** Lets others join at once. To be called when the shards have ended. */
  async leave(): Promise<void> {
    this.#stop.abort()
    await this.#beating
    await this.#thread?.close()
    const { node } = this.#parts.settings
    try {
      const nodes = await this.#nodes()
      const own = (await nodes.all()).find((row) => row.node === node)
      if (own?.incarnation === this.#incarnation) await nodes.expel(own)
      await this.#session?.close()
    } catch (error) {
      // Others wait for as long as a lease then.
      this.#parts.log.warn({ err: error }, 'the cluster could not be told that this node has stopped')
      this.#session?.drop()
    }
  }

  get figures(): ClusterFigures {
    return { ...(this.#thread?.figures ?? noClusterFigures), mayAnswer: this.lease.holds() }
  }

  linesOf: ClusterOwner['linesOf'] = (shard) => {
    if (this.#thread === undefined) throw new Error('Expected the node to have joined')
    return this.#thread.linesOf(shard)
  }

  /** Waits until no other node is alive. @throws Error where one beats */
  async #alone(): Promise<void> {
    const nodes = await this.#nodes()
    const first = await nodes.all()
    for (const row of first.filter((row) => this.#wasHere(row))) await nodes.expel(row)
    let others = first.filter((row) => row.alive && !this.#wasHere(row))
    const leaseMs = Math.max(this.#leaseMs, ...others.map(leaseMsOf))
    const silence = new Silence(leaseMs)
    if (others.length > 0)
      this.#parts.log.info(
        { nodes: others.map(({ node }) => node), leaseMs },
        'waiting for what was a node of the cluster to be silent for longer than its lease',
      )
    while (others.length > 0) {
      silence.saw(others, steadyClock())
      await delay(leaseMs / BEATS_PER_LEASE)
      for (const gone of silence.expired(steadyClock())) await nodes.expel(gone)
      others = (await nodes.all()).filter((row) => row.alive)
      const beating = others.find((row) => !first.some((one) => isSameBeat(one, row)))
      if (beating !== undefined)
        throw new Error(
          `the node ${beating.node} on ${beating.address} is alive, and one node of a cluster runs at a time: stop it first`,
        )
    }
  }

  /** Whether a row is of a process that ran on this directory, which is locked by this one: so that has ended. */
  #wasHere({ node, incarnation, alive }: NodeRow): boolean {
    const kept = readIfThere(join(this.#parts.directory.path, incarnationFile))?.trim()
    return alive && kept === `${node} ${incarnation}`
  }

  async #joined(): Promise<number | undefined> {
    const { node, leaseSecs } = this.#parts.settings
    const about = {
      node,
      address: hostname(),
      formatMax: clusterFormat,
      settingsDigest: `lease ${leaseSecs}`,
    }
    return (await this.#nodes()).join(about)
  }

  async #beatOn(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#pause()
      if (this.#stop.signal.aborted) return
      const sentAtMs = machineClock()
      try {
        if (await this.#sendBeat()) this.lease.extend(sentAtMs + this.#leaseMs)
        else if (await this.#isExpelled()) return this.#end()
      } catch (error) {
        this.#session?.drop()
        if (this.lease.holds())
          this.#parts.log.warn({ err: error }, 'a beat did not reach the database of the cluster')
      }
      this.#tellCutOff()
    }
  }

  async #pause(): Promise<void> {
    const { signal } = this.#stop
    await delay(this.#leaseMs / BEATS_PER_LEASE, undefined, { signal, ref: false }).catch(() => {})
  }

  async #sendBeat(): Promise<boolean> {
    const { node } = this.#parts.settings
    const timer = setTimeout(() => this.#session?.drop(), this.#leaseMs)
    try {
      const nodes = await this.#nodes()
      return await nodes.beat({ node, incarnation: this.#incarnation, owns: '{}' })
    } finally {
      clearTimeout(timer)
    }
  }

  /** The beat did not count: because its commit may be lost, or because somebody expelled this node. */
  async #isExpelled(): Promise<boolean> {
    const { node } = this.#parts.settings
    const own = (await (await this.#nodes()).all()).find((row) => row.node === node)
    return own?.alive !== true || own.incarnation !== this.#incarnation
  }

  #end(): void {
    this.lease.end()
    this.#parts.lost('another node of the cluster has taken the place of this one')
  }

  #tellCutOff(): void {
    const isCutOff = !this.lease.holds()
    if (isCutOff === this.#isCutOff) return
    this.#isCutOff = isCutOff
    const { log } = this.#parts
    if (isCutOff) log.error('the database of the cluster cannot be reached: answering nothing until it can')
    else log.warn('the database of the cluster can be reached again')
  }

  async #nodes(): Promise<NodeTable> {
    if (this.#session?.open !== true) this.#session = await Session.open(this.#parts.settings.urls)
    return new NodeTable(this.#session, statements)
  }
}

/** What a node says of its lease, milliseconds. */
function leaseMsOf({ settingsDigest }: NodeRow): number {
  return Number(/^lease (\d{1,4})$/.exec(settingsDigest)?.[1] ?? 0) * 1_000
}

function isSameBeat(one: NodeRow, other: NodeRow): boolean {
  return one.node === other.node && one.incarnation === other.incarnation && one.beat === other.beat
}
