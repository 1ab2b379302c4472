import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../base/log.js'
import { clockFault, clockWarning } from '../members/clocks.js'
import { ConfirmedClock } from '../../protocol/confirmed-clock.js'
import { HEARTBEATS_PER_LEASE } from '../members/lease.js'
import type { Member } from '../members/member.js'
import type { Membership } from '../members/membership.js'
import { decodeReport, differences, leaseMsOf } from '../members/node-report.js'
import type { ClusterConfig } from '../../settings/cluster.js'

interface OwnChecksParts {
  settings: Pick<ClusterConfig, 'node' | 'leaseSecs'>
  membership: Pick<Membership, 'clock' | 'members' | 'step' | 'leave'>
  log: Logger
  /** Releases the shards of this node and leaves the cluster. */
  leave(): Promise<void>
  /** The process must end. */
  lost(reason: string): void
}

/**
 * Compares the clock and the lease of this node with those of the others. A node that would harm them owns
 * nothing (docs/adr/0046-members-of-a-cluster.md).
 */
export class OwnChecks {
  /** Confirmed by each look. */
  readonly clock = ConfirmedClock.start()
  readonly #parts: OwnChecksParts
  #isClockOff = false
  #differences = ''
  #isLeaving = false

  constructor(parts: OwnChecksParts) {
    this.#parts = parts
  }

  /** Checks the node after it has joined, before it owns anything. @throws Error after leaving the cluster */
  async atJoin(): Promise<void> {
    const fault = this.#clockFault ?? (await this.#otherLease())
    if (fault === undefined) {
      this.#confirmClock()
      return
    }
    await this.#parts.membership.leave()
    throw new Error(fault)
  }

  /**
   * Warns of a clock that differs. Before it signs times that others could not follow for minutes, the node
   * hands its shards over, leaves and ends. Call it with each heartbeat.
   */
  look(): void {
    const { log, lost, leave, membership } = this.#parts
    const warning = clockWarning(membership.clock?.aheadMs)
    if (warning !== undefined && !this.#isClockOff) log.warn(`the clock of this machine ${warning}`)
    this.#isClockOff = warning !== undefined
    const fault = this.#clockFault
    if (fault === undefined) this.#confirmClock()
    if (fault === undefined || this.#isLeaving) return
    this.#isLeaving = true
    log.fatal({ reason: fault }, 'this node leaves the cluster')
    void leave()
      .catch((error: unknown) => log.error({ err: error }, 'could not leave the cluster in order'))
      .finally(() => lost(fault))
  }

  /** Logs each new set of settings or builds in which nodes differ. */
  compareSettings(members: readonly Member[]): void {
    const found = differences(members)
    if (found.length > 0 && found.join() !== this.#differences)
      this.#parts.log.warn({ differences: found }, 'nodes of the cluster have different settings or builds')
    this.#differences = found.join()
  }

  get #clockFault(): string | undefined {
    const aheadMs = this.#parts.membership.clock?.aheadMs ?? 0
    const others = this.#others.flatMap((member) => decodeReport(member).clockAheadMs ?? [])
    const fault = clockFault(aheadMs, others)
    return fault && `the clock of this machine ${fault}, and most other nodes do not agree with it: set it`
  }

  #confirmClock(): void {
    const { membership } = this.#parts
    if (membership.clock !== undefined) this.clock.confirm(membership.clock.offsetMs)
  }

  /** Finds a node that sends heartbeats and has another lease; a node that sends none is waited for. */
  async #otherLease(): Promise<string | undefined> {
    const { settings, membership } = this.#parts
    const leaseMs = settings.leaseSecs * 1_000
    const first = this.#others
    const isAlive = (member: Member) =>
      first.some(({ node, heartbeat }) => node === member.node && heartbeat !== member.heartbeat)
    for (;;) {
      const found = this.#others.filter((member) => leaseMsOf(member) !== leaseMs)
      if (found.length === 0) return undefined
      const other = found.find(isAlive)
      if (other !== undefined)
        return `its SERVICE_CLUSTER_LEASE_SECS is ${leaseMs / 1_000}, and ${leaseMsOf(other) / 1_000} at the node ${other.node}: all nodes need the same`
      await pause(leaseMs / HEARTBEATS_PER_LEASE)
      await membership.step()
    }
  }

  get #others(): Member[] {
    const { membership, settings } = this.#parts
    return membership.members.filter(({ node }) => node !== settings.node)
  }
}
