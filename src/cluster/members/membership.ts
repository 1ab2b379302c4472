import { assert } from '../../base/assert.js'
import { limits } from '../../base/limits/limits.js'
import { type Clock, machineClock, systemClock } from '../../base/clock.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import { withinTime } from '../../base/time-limit.js'
import { clockAheadMs } from './clocks.js'
import type { Member, MemberAbout, RowFault, MemberRows } from './member.js'
import { KnownRows } from './known-rows.js'
import { HEARTBEATS_PER_LEASE, type Sighting, MissedHeartbeats } from './lease.js'

/** The outcome of a heartbeat: `counted`; `unsafe` (written, may be lost); `missed` (the row had changed). */
export type HeartbeatOutcome = 'counted' | 'unsafe' | 'missed'

/** The table of nodes, over one connection. If a call throws, its outcome is unknown. */
export interface MemberTable {
  all(): Promise<MemberRows>
  /** @returns its row; undefined if a node of that name is alive, or another node joined first */
  join(about: MemberAbout): Promise<Member | undefined>
  /** The database's time of day at the last heartbeat, Unix milliseconds, if it was written. */
  readonly databaseMs?: number | undefined
  /** Replaces the row that this node has written last. */
  heartbeat(last: Member, next: Member): Promise<HeartbeatOutcome>
  /** @returns whether the heartbeat in that row was the last one of the node, permanently */
  expel(seen: Member): Promise<boolean>
  /** Closes the connection immediately; a running call fails. */
  drop(): void
}

export interface MembershipParts {
  about: MemberAbout
  /** The lease of this node, milliseconds. */
  leaseMs: number
  /** The lease of another node by its row, milliseconds: it is not expelled while it may answer. */
  leaseMsOf(member: Member): number
  /** Checked by all threads of this incarnation before they answer. */
  lease: LeaseMemory
  nowMs: Clock
  /** Connects to the server that accepts writes. */
  connect(): Promise<MemberTable>
  /** The set of live nodes has changed; this node is one of them. */
  changed(members: readonly Member[]): void
  /** Whether another node confirms its lease over a link; then it is not expelled despite the table. */
  answers(node: Pick<Member, 'node' | 'incarnation'>): boolean
  /** A heartbeat or a read of the table failed; it is retried. */
  trouble(error: unknown): void
  /** The set of rejected rows has changed. */
  faultsChanged(faults: readonly RowFault[]): void
  /** This node was expelled, or its row was changed: its lease has ended, and the process must end. */
  expelled(reason: string): void
}

/** Heartbeats that may fail in a row before this node forgets the missed heartbeats of others. */
const HEARTBEATS_MISSED = 3

/** A node of the same name is alive. */
export class NameTaken extends Error {}

/**
 * The membership of a node in its cluster (docs/adr/0046-members-of-a-cluster.md): it joins, sends
 * heartbeats, keeps its lease, watches the other nodes, and expels those that miss their heartbeats.
 */
export class Membership {
  readonly #parts: MembershipParts
  readonly #missed: MissedHeartbeats
  #table: MemberTable | undefined
  #connecting: Promise<MemberTable> | undefined
  /** The row of this node, as it was last written or read. */
  #own: Member | undefined
  readonly #known = new KnownRows()
  #faults: readonly RowFault[] = []
  #report = '{}'
  #clock: { aheadMs: number; offsetMs: number } | undefined
  #confirmedAtMs = -Infinity
  #members: readonly Member[] = []
  #stopped: readonly Member[] = []
  #isOver = false
  #wake = () => {}
  #running: Promise<void> = Promise.resolve()

  constructor(parts: MembershipParts) {
    this.#parts = parts
    this.#missed = new MissedHeartbeats(parts.leaseMs)
  }

  get incarnation(): number {
    return this.#own?.incarnation ?? 0
  }

  /**
   * How far the clock of this machine was ahead of the database's at the last heartbeat that was written, and
   * of the machine's monotonic clock; milliseconds.
   */
  get clock(): { aheadMs: number; offsetMs: number } | undefined {
    return this.#clock
  }

  /** Rows rejected at the last read. */
  get faults(): readonly RowFault[] {
    return this.#faults
  }

  /** Nodes that were alive at the last read. */
  get members(): readonly Member[] {
    return this.#members
  }

  /** Nodes that were stopped or expelled, and whose rows remain. */
  get stopped(): readonly Member[] {
    return this.#stopped
  }

  /** Time since the database has last confirmed a heartbeat of this node, milliseconds, if it is over a lease. */
  get cutOffMs(): number | undefined {
    const sinceMs = this.#parts.nowMs() - this.#confirmedAtMs
    return sinceMs > this.#parts.leaseMs ? sinceMs : undefined
  }

  /** The report of this node, sent with the next heartbeat. */
  set report(text: string) {
    this.#report = text
  }

  /**
   * Joins the cluster. If a node of this name is alive, waits until its lease must have ended.
   * @param ended an incarnation of this name whose process has certainly ended: no wait for that one
   * @throws NameTaken if it is alive; Error if the database cannot be reached or lost acknowledged rows
   */
  async join(ended?: number): Promise<number> {
    try {
      return await this.#join(ended)
    } catch (error) {
      this.#drop()
      throw error
    }
  }

  async #join(ended: number | undefined): Promise<number> {
    const { about, nowMs, leaseMs } = this.#parts
    const missed = new MissedHeartbeats(leaseMs)
    let seen: Member | undefined
    for (;;) {
      const table = await this.#connected()
      const requestedAtMs = nowMs()
      const own = await this.#within(table, table.join(about))
      if (own !== undefined) {
        if (nowMs() - requestedAtMs >= leaseMs) throw new Error('Joining took longer than a lease')
        if ((await this.#sendHeartbeat(table, own)) === 'counted') return own.incarnation
        throw new Error('The database did not accept the first heartbeat of the node')
      }
      const { members } = await this.#within(table, table.all())
      const row = members.find(({ node }) => node === about.node)
      if (row === undefined) throw new Error('The row of this node is missing from the table of nodes')
      if (seen !== undefined && (row.incarnation !== seen.incarnation || row.heartbeat !== seen.heartbeat))
        throw new NameTaken(
          `The node ${row.node} is already alive on ${row.address}: each node needs its own name`,
        )
      seen = row
      missed.observe([this.#sightingOf(row)], nowMs())
      const hasEnded = row.incarnation === ended || missed.expired(nowMs()).length > 0
      if (hasEnded) await this.#within(table, table.expel(row))
      else await this.#pause(leaseMs / HEARTBEATS_PER_LEASE)
    }
  }

  /** Sends heartbeats and watches the others, until this node leaves or is expelled. */
  start(): void {
    this.#running = this.#run()
  }

  /** Reads the live nodes from the table. @throws Error if the database does not answer in time */
  async look(): Promise<readonly Member[]> {
    const table = await this.#connected()
    const { members } = this.#known.accept(await this.#within(table, table.all()))
    return members.filter(({ alive }) => alive)
  }

  /** Sends one heartbeat and checks the other nodes. @throws Error if the database did not answer in time */
  async step(): Promise<void> {
    const { nowMs } = this.#parts
    const table = await this.#connected()
    const last = this.#joined
    const outcome = await this.#sendHeartbeat(table, last)
    const { members: rows, faults } = this.#known.accept(await this.#within(table, table.all()))
    // After the read: a heartbeat that it did not see cannot be older.
    const readAtMs = nowMs()
    const own = rows.find(({ node }) => node === last.node)
    if (own?.alive !== true || own.incarnation !== last.incarnation) {
      this.#reportFaults(faults)
      this.#end()
      this.#parts.expelled(this.#expelReason(own, faults))
      return
    }
    // The answer to an earlier heartbeat was lost; the row contains that heartbeat.
    if (outcome === 'missed') await this.#sendHeartbeat(table, own)
    const missing = this.#missingFrom(rows)
    const others = [...rows.filter((row) => row.alive && row !== own), ...missing]
    this.#missed.observe(
      others.map((row) => this.#sightingOf(row)),
      readAtMs,
    )
    const expelled = new Set<string>()
    for (const { node, incarnation } of this.#missed.expired(readAtMs)) {
      const over = others.find((row) => row.node === node)
      if (this.#parts.answers({ node, incarnation })) faults.push({ node, reason: FORKED })
      else if (
        over !== undefined &&
        (missing.includes(over) || (await this.#within(table, table.expel(over))))
      )
        expelled.add(node)
    }
    this.#reportFaults(faults)
    this.#stopped = rows.filter(({ alive }) => !alive)
    this.#setMembers([own, ...others.filter(({ node }) => !expelled.has(node))])
  }

  /**
   * Nodes that were alive and have no accepted row any more. They may hold a lease until they have missed
   * their heartbeats for longer than that; their next heartbeats do not count unless they join again.
   */
  #missingFrom(rows: readonly Member[]): Member[] {
    const isMentioned = ({ node, incarnation }: Member) =>
      rows.some((row) => row.node === node && (row.alive || row.incarnation >= incarnation))
    return this.#members.filter((member) => member.node !== this.#parts.about.node && !isMentioned(member))
  }

  #expelReason(own: Member | undefined, faults: readonly RowFault[]): string {
    if (own !== undefined) return 'another node has expelled this one from the cluster'
    const { node } = this.#parts.about
    const reason = faults.find((one) => one.node === node)?.reason ?? 'is missing'
    return `the row of this node in the database of the cluster ${reason}`
  }

  /**
   * Leaves the cluster, so that others take over without waiting. Call it when this node writes nothing more.
   * @throws Error if the database was not updated; then the others wait for missed heartbeats
   */
  async leave(): Promise<void> {
    this.#end()
    await this.#running
    const table = await this.#connected()
    try {
      const { members } = await this.#within(table, table.all())
      const own = members.find(({ node }) => node === this.#parts.about.node)
      if (own?.incarnation === this.incarnation && own.alive) await this.#within(table, table.expel(own))
    } finally {
      this.#drop()
    }
  }

  async #run(): Promise<void> {
    const heartbeatMs = this.#parts.leaseMs / HEARTBEATS_PER_LEASE
    while (!this.#isOver) {
      const startedAtMs = this.#parts.nowMs()
      try {
        await this.step()
        await this.#pause(Math.max(0, startedAtMs + heartbeatMs - this.#parts.nowMs()))
      } catch (error) {
        this.#drop()
        this.#parts.trouble(error)
        if (this.#isOver) return
        await this.#pause(heartbeatMs / HEARTBEATS_PER_LEASE)
      }
    }
    this.#drop()
  }

  /** The row of this node after it has joined. */
  get #joined(): Member {
    assert(this.#own !== undefined, 'a node sends heartbeats after it has joined')
    return this.#own
  }

  /** @param last the expected row of this node */
  async #sendHeartbeat(table: MemberTable, last: Member): Promise<HeartbeatOutcome> {
    const { nowMs, lease, leaseMs } = this.#parts
    const [sentAtMs, sentWallMs] = [nowMs(), systemClock()]
    const next: Member = { ...last, heartbeat: last.heartbeat + 1, report: this.#report }
    this.#own = last
    const outcome = await this.#within(table, table.heartbeat(last, next))
    if (outcome !== 'missed') this.#own = next
    const answeredAtMs = nowMs()
    const { databaseMs } = table
    const wallMs = systemClock()
    const jumpMs = wallMs - sentWallMs - (answeredAtMs - sentAtMs)
    // A clock that jumped during the request would seem right: the next heartbeat shows what it is.
    if (databaseMs !== undefined && Math.abs(jumpMs) <= limits.clusterClockWarnMs) {
      const aheadMs = clockAheadMs({ sentAtMs: sentWallMs, answeredAtMs: wallMs, databaseMs })
      this.#clock = { aheadMs, offsetMs: wallMs - machineClock() }
    }
    // The database was down or this process suspended: heartbeats that others missed then prove nothing.
    const late = (HEARTBEATS_MISSED * leaseMs) / HEARTBEATS_PER_LEASE
    if (outcome === 'unsafe' || answeredAtMs - this.#confirmedAtMs > late) this.#missed.forget()
    if (outcome !== 'counted') return outcome
    this.#known.confirm(next)
    this.#confirmedAtMs = answeredAtMs
    lease.extend(sentAtMs + leaseMs)
    return outcome
  }

  #reportFaults(faults: readonly RowFault[]): void {
    const texts = (list: readonly RowFault[]) => list.map(({ node, reason }) => `${node} ${reason}`).join()
    const isSame = texts(faults) === texts(this.#faults)
    this.#faults = faults
    if (!isSame) this.#parts.faultsChanged(faults)
  }

  #sightingOf(member: Member): Sighting {
    const { node, incarnation, heartbeat } = member
    return { node, incarnation, heartbeat, leaseMs: this.#parts.leaseMsOf(member) }
  }

  #setMembers(members: readonly Member[]): void {
    const names = (list: readonly Member[]) =>
      list
        .map((one) => `${one.node} ${one.incarnation}`)
        .sort()
        .join()
    const isSame = names(members) === names(this.#members)
    this.#members = members
    if (!isSame) this.#parts.changed(members)
  }

  #end(): void {
    this.#isOver = true
    this.#parts.lease.end()
    this.#wake()
  }

  async #connected(): Promise<MemberTable> {
    if (this.#table !== undefined) return this.#table
    this.#connecting ??= this.#parts.connect()
    try {
      this.#table = await this.#connecting
      return this.#table
    } finally {
      this.#connecting = undefined
    }
  }

  #drop(): void {
    this.#known.forgetRead()
    this.#table?.drop()
    this.#table = undefined
  }

  /**
   * Closes the connection if the work takes longer than half a lease, so that another one can be tried within
   * the lease; after a lease, its result would not count any more.
   */
  #within<T>(table: MemberTable, work: Promise<T>): Promise<T> {
    const { leaseMs } = this.#parts
    const ms = Math.min(leaseMs, Math.max(leaseMs / 2, limits.clusterHeartbeatMsMin))
    return withinTime({ ms, drop: () => table.drop() }, () => work)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
      if (this.#isOver) this.#wake()
    })
  }
}

const FORKED =
  'has not changed for longer than a lease, but the node confirms over its link that it has one: is the database of this node a copy?'
