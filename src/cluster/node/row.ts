import { systemClock, machineClock } from '../../base/clock.js'
import type { Logger } from '../../base/log.js'
import { version } from '../../base/version.js'
import { BEATS_PER_LEASE } from '../members/lease.js'
import type { Member, RowFault } from '../members/membership.js'
import type { Candidate } from '../members/placement.js'
import { Readiness } from '../members/readiness.js'
import { describeFaults, readTold, tellOwn } from '../members/settings-digest.js'
import type { ClusterShards } from './shards.js'
import type { PeerPlace } from '../../server/calls/front-messages.js'
import type { Peers } from '../links/peers.js'
import type { Standing } from '../../server/state.js'

/** What a node has, once it has begun. */
export interface Begun {
  shards: ClusterShards
  peers: Peers
  standing: Standing
  /** Why it serves nothing any more: a log lacks what it knows to be durable. */
  refusedFor?: string
}

/** Beats after which a node has not just started: those of three leases. */
const SETTLED_BEATS = 3 * BEATS_PER_LEASE

/** What a node tells of itself with each beat, and reads of the others: hints, of which the log trusts none. */
export class ClusterRow {
  readonly #name: string
  readonly #readiness: Readiness
  #servesSinceMs: number | undefined
  /** Nodes that are about to give all their shards up, as they have said by their links. */
  readonly #stopping = new Set<string>()

  constructor(name: string, leaseMs: number) {
    this.#name = name
    this.#readiness = new Readiness(leaseMs)
  }

  /** What it tells now. @param link where it takes links */
  text(link: string, members: readonly Member[], begun: Begun | undefined): string {
    if (begun?.refusedFor !== undefined) return tellOwn({ version, link, refuses: begun.refusedFor })
    if (begun === undefined) return tellOwn({ version, link })
    const { owned, held, count, lagSecs } = begun.shards
    this.#servesSinceMs = owned.length === 0 ? undefined : (this.#servesSinceMs ?? systemClock())
    return tellOwn({
      version,
      link,
      owned,
      held,
      servesSinceMs: this.#servesSinceMs,
      lagSecs: owned.length === count ? undefined : lagSecs,
      isReady: this.#isReady(members, begun) && !begun.shards.isStopping,
    })
  }

  #isReady(members: readonly Member[], { shards, peers }: Begun): boolean {
    const linked = peers.open
    return this.#readiness.look({
      nowMs: machineClock(),
      ownsAny: shards.owned.length > 0,
      lagMs: shards.lagSecs * 1_000,
      others: this.#others(members).map((member) => {
        const { isReady, owned = [] } = readTold(member)
        return { matters: isReady === true || owned.length > 0, isLinked: linked.has(member.node) }
      }),
    })
  }

  #others(members: readonly Member[]): Member[] {
    return members.filter(({ node }) => node !== this.#name)
  }

  /** A node is about to give all its shards up: it is to have none, whatever its row says. */
  stops(node: Pick<Member, 'node' | 'incarnation'>): void {
    this.#stopping.add(nameOf(node))
  }

  /** The nodes that are alive, stay so and do not refuse to serve, as those that may own shards. */
  candidates(members: readonly Member[]): Candidate[] {
    const names = new Set(members.map(nameOf))
    for (const name of this.#stopping) if (!names.has(name)) this.#stopping.delete(name)
    const staying = members.filter((member) => !this.#stopping.has(nameOf(member)))
    return staying.flatMap((member) => {
      const { isReady = false, held = [], refuses } = readTold(member)
      if (refuses !== undefined) return []
      const isSettled = member.beat >= SETTLED_BEATS
      return { node: member.node, isReady, isSettled, holds: held }
    })
  }

  /** Where the others take links. */
  peers(members: readonly Member[]): PeerPlace[] {
    return this.#others(members).flatMap((member) => placeOf(member) ?? [])
  }
}

/** Logs which rows of the table of nodes are not believed, once that has changed. */
export function tellFaults(faults: readonly RowFault[], log: Logger): void {
  if (faults.length === 0) log.warn('all rows of nodes in the database of the cluster verify again')
  else
    log.error(
      { faults: describeFaults(faults) },
      'rows of nodes in the database of the cluster are not believed',
    )
}

/** Of a name of a host (RFC 1035, 2.3.4). */
const HOST_CHARS_MAX = 253

function nameOf({ node, incarnation }: Pick<Member, 'node' | 'incarnation'>): string {
  return `${node} ${incarnation}`
}

/** Where a node takes links, as its row says; undefined where it says nothing that this version knows. */
function placeOf(member: Member): PeerPlace | undefined {
  const { link = '' } = readTold(member)
  const { node, incarnation } = member
  const colon = link.lastIndexOf(':')
  const [host, port] = [link.slice(0, colon), Number(link.slice(colon + 1))]
  const isHost = colon >= 1 && colon <= HOST_CHARS_MAX
  const isPort = Number.isInteger(port) && port >= 1 && port <= 65_535
  return isHost && isPort ? { node, incarnation, host, port } : undefined
}
