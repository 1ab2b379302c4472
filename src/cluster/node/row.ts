import { systemClock, machineClock } from '../../base/clock.js'
import type { Logger } from '../../base/log.js'
import { build } from '../../base/version.js'
import type { HostStatus, PeerAddress } from '../host.js'
import { HEARTBEATS_PER_LEASE } from '../members/lease.js'
import type { Member, RowFault } from '../members/member.js'
import type { Candidate } from '../members/placement.js'
import { Readiness } from '../members/readiness.js'
import { describeFaults, decodeReport, encodeReport, type NodeReport } from '../members/node-report.js'
import type { ClusterShards } from './shards.js'
import type { Peers } from '../links/peers.js'

export interface StartedNode {
  shards: ClusterShards
  peers: Peers
  status: HostStatus
  /** Why it refuses to serve: a log has lost segments that it knows to be durable. */
  refusedFor?: string
}

/** Heartbeats after which a node counts as settled: those of three leases. */
const SETTLED_HEARTBEATS = 3 * HEARTBEATS_PER_LEASE

/**
 * Encodes the report of this node, and reads those of the others. Reports are hints: the log relies on none
 * of them.
 */
export class ClusterRow {
  readonly #name: string
  readonly #readiness: Readiness
  #servesSinceMs: number | undefined
  /** Nodes that have announced over their links that they are about to release all their shards. */
  readonly #stopping = new Set<string>()

  constructor(name: string, leaseMs: number) {
    this.#name = name
    this.#readiness = new Readiness(leaseMs)
  }

  /** The current report. @param about where this node accepts links, and how far its clock is off */
  text(
    about: Pick<NodeReport, 'link' | 'clockAheadMs'>,
    members: readonly Member[],
    begun: StartedNode | undefined,
  ): string {
    const own = { version: build, ...about }
    if (begun?.refusedFor !== undefined) return encodeReport({ ...own, refuses: begun.refusedFor })
    if (begun === undefined) return encodeReport(own)
    const { owned, held, count, lagSecs } = begun.shards
    this.#servesSinceMs = owned.length === 0 ? undefined : (this.#servesSinceMs ?? systemClock())
    return encodeReport({
      ...own,
      owned,
      held,
      servesSinceMs: this.#servesSinceMs,
      lagSecs: owned.length === count ? undefined : lagSecs,
      isReady: this.#isReady(members, begun) && !begun.shards.isStopping,
      isFull: begun.status.readOnly,
    })
  }

  #isReady(members: readonly Member[], { shards, peers, status }: StartedNode): boolean {
    const linked = peers.open
    return this.#readiness.look({
      nowMs: machineClock(),
      ownsAny: shards.owned.length > 0,
      isFull: status.readOnly,
      lagMs: shards.lagSecs * 1_000,
      others: this.#others(members).map((member) => {
        const { isReady, owned = [] } = decodeReport(member)
        return { matters: isReady === true || owned.length > 0, isLinked: linked.has(member.node) }
      }),
    })
  }

  #others(members: readonly Member[]): Member[] {
    return members.filter(({ node }) => node !== this.#name)
  }

  /** Marks a node as stopping: it gets no shards, whatever its row says. */
  markStopping(node: Pick<Member, 'node' | 'incarnation'>): void {
    this.#stopping.add(nameOf(node))
  }

  /** The live nodes that may own shards: those that are not stopping and do not refuse to serve. */
  candidates(members: readonly Member[]): Candidate[] {
    const names = new Set(members.map(nameOf))
    for (const name of this.#stopping) if (!names.has(name)) this.#stopping.delete(name)
    const staying = members.filter((member) => !this.#stopping.has(nameOf(member)))
    return staying.flatMap((member) => {
      const { isReady = false, held = [], refuses } = decodeReport(member)
      if (refuses !== undefined) return []
      const isSettled = member.heartbeat >= SETTLED_HEARTBEATS
      return { node: member.node, isReady, isSettled, holds: held }
    })
  }

  /** The link addresses of the other nodes. */
  peers(members: readonly Member[]): PeerAddress[] {
    return this.#others(members).flatMap((member) => linkAddressOf(member) ?? [])
  }
}

/** Logs which rows of the table of nodes are rejected. */
export function logFaults(faults: readonly RowFault[], log: Logger): void {
  if (faults.length === 0) log.warn('all node rows in the database of the cluster are valid again')
  else
    log.error(
      { faults: describeFaults(faults) },
      'rows of nodes in the database of the cluster were rejected',
    )
}

/** Maximum length of a host name (RFC 1035, 2.3.4). */
const HOST_CHARS_MAX = 253

function nameOf({ node, incarnation }: Pick<Member, 'node' | 'incarnation'>): string {
  return `${node} ${incarnation}`
}

/** The link address in the row of a node; undefined if the row has none that is valid. */
function linkAddressOf(member: Member): PeerAddress | undefined {
  const { link = '' } = decodeReport(member)
  const { node, incarnation } = member
  const colon = link.lastIndexOf(':')
  const [host, port] = [link.slice(0, colon), Number(link.slice(colon + 1))]
  const isHost = colon >= 1 && colon <= HOST_CHARS_MAX
  const isPort = Number.isInteger(port) && port >= 1 && port <= 65_535
  return isHost && isPort ? { node, incarnation, host, port } : undefined
}
