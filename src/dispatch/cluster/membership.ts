import type { Clock } from '../../base/clock.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import { BEATS_PER_LEASE, Silence } from './lease.js'

/** A node as the others see it: its row in the table of nodes. */
export interface Member {
  node: string
  /** Another number each time that it joins. */
  incarnation: number
  beat: number
  alive: boolean
  address: string
  formatMax: number
  settingsDigest: string
  owns: string
}

/** What a node says of itself when it joins. */
export type MemberAbout = Pick<Member, 'node' | 'address' | 'formatMax' | 'settingsDigest'>

/** The table of nodes, by one connection. What fails is thrown; nobody knows then whether it was done. */
export interface MemberTable {
  all(): Promise<Member[]>
  /** @returns the number of the incarnation; undefined where a node of that name is alive */
  join(about: MemberAbout): Promise<number | undefined>
  /** @returns whether it counts */
  beat(own: Pick<Member, 'node' | 'incarnation' | 'owns'>): Promise<boolean>
  /** @returns whether that beat was its last one, and is so for good */
  expel(seen: Pick<Member, 'node' | 'incarnation' | 'beat'>): Promise<boolean>
  /** Ends the connection at once; what is under way fails. */
  drop(): void
}

/** What a membership is made of. */
export interface MembershipParts {
  about: MemberAbout
  /** Of this node, milliseconds. */
  leaseMs: number
  /** That of another node, as its row says, milliseconds: it is waited for as long as it may answer. */
  leaseMsOf(member: Member): number
  /** What all threads of this incarnation look at before they answer. */
  lease: LeaseMemory
  /** The clock of that memory. */
  nowMs: Clock
  /** Connects to the server that takes writes. */
  connect(): Promise<MemberTable>
  /** Other nodes are alive than before, this one among them. */
  changed(members: readonly Member[]): void
  /** A beat or a look failed; it is tried again. */
  trouble(error: unknown): void
  /** This node was expelled: its lease is over, and the process has to end. */
  expelled(): void
}

/** Beats that may be missing until this node no longer trusts what it knows of the silence of others. */
const BEATS_MISSED = 3

/** A node of the same name is alive. */
export class NameTaken extends Error {}

/**
 * A node's place among the members of a cluster (docs/adr/0046-members-of-a-cluster.md): it joins, beats, keeps its lease,
 * watches the others, and expels who is silent for too long.
 */
export class Membership {
  readonly #parts: MembershipParts
  readonly #silence: Silence
  #table: MemberTable | undefined
  #connecting: Promise<MemberTable> | undefined
  #incarnation = 0
  #owns = '{}'
  #confirmedAtMs = -Infinity
  #members: readonly Member[] = []
  #isOver = false
  #wake = () => {}
  #running: Promise<void> = Promise.resolve()

  constructor(parts: MembershipParts) {
    this.#parts = parts
    this.#silence = new Silence(parts.leaseMs)
  }

  get incarnation(): number {
    return this.#incarnation
  }

  /** Nodes that were alive when this one looked last. */
  get members(): readonly Member[] {
    return this.#members
  }

  /** What this node owns, for people: goes with the next beat. */
  set owns(text: string) {
    this.#owns = text
  }

  /**
   * Joins. Where a node of this name is there already, it waits until that has been silent for longer than its lease.
   * @param ended the incarnation of this name whose process has certainly ended: it is not waited for
   * @throws NameTaken where it is alive; Error where the database cannot be reached, or loses what it acknowledged
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
    const silence = new Silence(leaseMs)
    let seen: Member | undefined
    for (;;) {
      const table = await this.#connected()
      const askedAtMs = nowMs()
      const incarnation = await this.#within(table, table.join(about))
      if (incarnation !== undefined) {
        // Who was stopped in between may read the number of the next one of this name.
        if (nowMs() - askedAtMs >= leaseMs) throw new Error('Joining took longer than a lease')
        this.#incarnation = incarnation
        if (await this.#beat(table)) return incarnation
        throw new Error('The first beat of the node did not count')
      }
      const row = (await this.#within(table, table.all())).find(({ node }) => node === about.node)
      if (row === undefined) throw new Error('The table of nodes has lost a row')
      if (seen !== undefined && (row.incarnation !== seen.incarnation || row.beat !== seen.beat))
        throw new NameTaken(`The node ${row.node} on ${row.address} is alive: names of nodes are given once`)
      seen = row
      silence.saw([this.#sightingOf(row)], nowMs())
      const isGone = row.incarnation === ended || silence.expired(nowMs()).length > 0
      if (isGone) await this.#within(table, table.expel(row))
      else await this.#pause(leaseMs / BEATS_PER_LEASE)
    }
  }

  /** Beats and watches from now on, until it leaves or is expelled. */
  start(): void {
    this.#running = this.#run()
  }

  /** The nodes that are alive, as the table says now. @throws Error where the database does not say it in time */
  async look(): Promise<readonly Member[]> {
    const table = await this.#connected()
    return (await this.#within(table, table.all())).filter(({ alive }) => alive)
  }

  /** One beat, and a look at the others. @throws Error where the database did not do it in time */
  async step(): Promise<void> {
    const { nowMs } = this.#parts
    const table = await this.#connected()
    await this.#beat(table)
    const rows = await this.#within(table, table.all())
    // When the reading had ended: no beat that it did not see can be older.
    const readAtMs = nowMs()
    const own = rows.find(({ node }) => node === this.#parts.about.node)
    if (own?.alive !== true || own.incarnation !== this.#incarnation) {
      this.#end()
      this.#parts.expelled()
      return
    }
    const others = rows.filter((row) => row.alive && row !== own)
    this.#silence.saw(
      others.map((row) => this.#sightingOf(row)),
      readAtMs,
    )
    const gone = new Set<string>()
    for (const over of this.#silence.expired(readAtMs))
      if (await this.#within(table, table.expel(over))) gone.add(over.node)
    this.#took([own, ...others.filter(({ node }) => !gone.has(node))])
  }

  /**
   * Leaves, so that others need not wait. To be called when nothing of this node writes any more.
   * @throws Error where that could not be told: the others wait for its silence then
   */
  async leave(): Promise<void> {
    this.#end()
    await this.#running
    const table = await this.#connected()
    try {
      const rows = await this.#within(table, table.all())
      const own = rows.find(({ node }) => node === this.#parts.about.node)
      if (own?.incarnation === this.#incarnation && own.alive) await this.#within(table, table.expel(own))
    } finally {
      this.#drop()
    }
  }

  async #run(): Promise<void> {
    const beatMs = this.#parts.leaseMs / BEATS_PER_LEASE
    while (!this.#isOver) {
      const startedAtMs = this.#parts.nowMs()
      try {
        await this.step()
        await this.#pause(Math.max(0, startedAtMs + beatMs - this.#parts.nowMs()))
      } catch (error) {
        this.#drop()
        this.#parts.trouble(error)
        if (this.#isOver) return
        await this.#pause(beatMs / BEATS_PER_LEASE)
      }
    }
    this.#drop()
  }

  async #beat(table: MemberTable): Promise<boolean> {
    const { about, nowMs, lease, leaseMs } = this.#parts
    const sentAtMs = nowMs()
    const own = { node: about.node, incarnation: this.#incarnation, owns: this.#owns }
    const counted = await this.#within(table, table.beat(own))
    const answeredAtMs = nowMs()
    // The database was away, or this process was stopped: the silence of others says nothing of that time.
    const late = (BEATS_MISSED * leaseMs) / BEATS_PER_LEASE
    if (!counted || answeredAtMs - this.#confirmedAtMs > late) this.#silence.forget()
    if (!counted) return false
    this.#confirmedAtMs = answeredAtMs
    lease.extend(sentAtMs + leaseMs)
    return true
  }

  #sightingOf(member: Member) {
    const { node, incarnation, beat } = member
    return { node, incarnation, beat, leaseMs: this.#parts.leaseMsOf(member) }
  }

  #took(members: readonly Member[]): void {
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
    this.#table?.drop()
    this.#table = undefined
  }

  /** What takes longer than a lease is given up with its connection: it would count for nothing. */
  async #within<T>(table: MemberTable, work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => table.drop(), this.#parts.leaseMs)
    try {
      return await work
    } finally {
      clearTimeout(timer)
    }
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
