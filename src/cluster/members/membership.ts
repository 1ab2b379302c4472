import { assert } from '../../base/assert.js'
import type { Clock } from '../../base/clock.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import { BEATS_PER_LEASE, Silence } from './lease.js'

/** A node as the others see it: its row in the table of nodes. */
export interface Member {
  node: string
  /** A later number each time that it joins. */
  incarnation: number
  /** The one that it had before, which had certainly ended when it joined; 0 where it joined without a row. */
  ended: number
  beat: number
  alive: boolean
  address: string
  formatMax: number
  settingsDigest: string
  owns: string
}

/** What a node says of itself when it joins. */
export type MemberAbout = Pick<Member, 'node' | 'address' | 'formatMax' | 'settingsDigest'>

/** A row that is not believed, by the name that it has, and why: the end of a sentence that begins with the row. */
export interface RowFault {
  node: string
  reason: string
}

/** What the table of nodes has: rows that verify, and what is wrong with others. */
export interface MemberRows {
  members: Member[]
  faults: RowFault[]
}

/**
 * What became of a beat: `counted`; `unsafe`, it is there and may be lost yet; `missed`, the row was another one than the node knew.
 */
export type Beaten = 'counted' | 'unsafe' | 'missed'

/** The table of nodes, by one connection. What fails is thrown; nobody knows then whether it was done. */
export interface MemberTable {
  all(): Promise<MemberRows>
  /** @returns its row; undefined where a node of that name is alive, or came first */
  join(about: MemberAbout): Promise<Member | undefined>
  /** Writes a row in place of the one that the node has written last. */
  beat(last: Member, next: Member): Promise<Beaten>
  /** @returns whether what was seen of it was its last beat, and is so for good */
  expel(seen: Member): Promise<boolean>
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
  /** Whether another node says by a link that it has a lease: then it is not expelled, whatever the table says. */
  answers(node: Pick<Member, 'node' | 'incarnation'>): boolean
  /** A beat or a look failed; it is tried again. */
  trouble(error: unknown): void
  /** Other rows are not believed than before. */
  distrusts(faults: readonly RowFault[]): void
  /** This node was expelled, or its row was changed: its lease is over, and the process has to end. */
  expelled(reason: string): void
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
  /** The row of this node as it was written, or read, last. */
  #own: Member | undefined
  readonly #known = new KnownRows()
  #faults: readonly RowFault[] = []
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
    return this.#own?.incarnation ?? 0
  }

  /** Rows that were not believed when this one looked last. */
  get faults(): readonly RowFault[] {
    return this.#faults
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
      const own = await this.#within(table, table.join(about))
      if (own !== undefined) {
        if (nowMs() - askedAtMs >= leaseMs) throw new Error('Joining took longer than a lease')
        if ((await this.#beat(table, own)) === 'counted') return own.incarnation
        throw new Error('The first beat of the node did not count')
      }
      const { members } = await this.#within(table, table.all())
      const row = members.find(({ node }) => node === about.node)
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
    const { members } = this.#known.believed(await this.#within(table, table.all()))
    return members.filter(({ alive }) => alive)
  }

  /** One beat, and a look at the others. @throws Error where the database did not do it in time */
  async step(): Promise<void> {
    const { nowMs } = this.#parts
    const table = await this.#connected()
    const last = this.#joined
    const beaten = await this.#beat(table, last)
    const { members: rows, faults } = this.#known.believed(await this.#within(table, table.all()))
    // When the reading had ended: no beat that it did not see can be older.
    const readAtMs = nowMs()
    const own = rows.find(({ node }) => node === last.node)
    if (own?.alive !== true || own.incarnation !== last.incarnation) {
      this.#distrust(faults)
      this.#end()
      this.#parts.expelled(this.#whyExpelled(own, faults))
      return
    }
    // The answer to an earlier beat was lost, and the row is that one.
    if (beaten === 'missed') await this.#beat(table, own)
    const hidden = this.#hiddenFrom(rows)
    const others = [...rows.filter((row) => row.alive && row !== own), ...hidden]
    this.#silence.saw(
      others.map((row) => this.#sightingOf(row)),
      readAtMs,
    )
    const gone = new Set<string>()
    for (const { node, incarnation } of this.#silence.expired(readAtMs)) {
      const over = others.find((row) => row.node === node)
      if (this.#parts.answers({ node, incarnation })) faults.push({ node, reason: FORKED })
      else if (
        over !== undefined &&
        (hidden.includes(over) || (await this.#within(table, table.expel(over))))
      )
        gone.add(node)
    }
    this.#distrust(faults)
    this.#took([own, ...others.filter(({ node }) => !gone.has(node))])
  }

  /**
   * Nodes that were alive and of which the table says nothing any more that is believed: they may have a lease until they were silent
   * for longer than that, and no beat of theirs counts before they have joined again.
   */
  #hiddenFrom(rows: readonly Member[]): Member[] {
    const isTold = ({ node, incarnation }: Member) =>
      rows.some((row) => row.node === node && (row.alive || row.incarnation >= incarnation))
    return this.#members.filter((member) => member.node !== this.#parts.about.node && !isTold(member))
  }

  #whyExpelled(own: Member | undefined, faults: readonly RowFault[]): string {
    if (own !== undefined) return 'another node of the cluster has taken the place of this one'
    const { node } = this.#parts.about
    const reason = faults.find((one) => one.node === node)?.reason ?? 'is not there any more'
    return `the row of this node in the database of the cluster ${reason}`
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
      const { members } = await this.#within(table, table.all())
      const own = members.find(({ node }) => node === this.#parts.about.node)
      if (own?.incarnation === this.incarnation && own.alive) await this.#within(table, table.expel(own))
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

  /** The row of this node, which has joined. */
  get #joined(): Member {
    assert(this.#own !== undefined, 'a node beats when it has joined')
    return this.#own
  }

  /** @param last the row of this node as it should be */
  async #beat(table: MemberTable, last: Member): Promise<Beaten> {
    const { nowMs, lease, leaseMs } = this.#parts
    const sentAtMs = nowMs()
    const next = { ...last, beat: last.beat + 1, owns: this.#owns }
    this.#own = last
    const beaten = await this.#within(table, table.beat(last, next))
    if (beaten !== 'missed') this.#own = next
    const answeredAtMs = nowMs()
    // The database was away, or this process was stopped: the silence of others says nothing of that time.
    const late = (BEATS_MISSED * leaseMs) / BEATS_PER_LEASE
    if (beaten === 'unsafe' || answeredAtMs - this.#confirmedAtMs > late) this.#silence.forget()
    if (beaten !== 'counted') return beaten
    this.#known.lasts(next)
    this.#confirmedAtMs = answeredAtMs
    lease.extend(sentAtMs + leaseMs)
    return beaten
  }

  #distrust(faults: readonly RowFault[]): void {
    const texts = (list: readonly RowFault[]) => list.map(({ node, reason }) => `${node} ${reason}`).join()
    const isSame = texts(faults) === texts(this.#faults)
    this.#faults = faults
    if (!isSame) this.#parts.distrusts(faults)
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
    this.#known.forgetRead()
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

/**
 * What is known of nodes for good. What was read of a table may be lost with its server yet; it is not once a later beat of this node
 * has counted on the same connection. A row that says less than what is known is an earlier one that was put back.
 */
class KnownRows {
  readonly #known = new Map<string, Member>()
  #read: readonly Member[] = []

  /** Takes what was read, without the rows that are older than those that are known. */
  believed({ members, faults }: MemberRows): MemberRows {
    const isOld = (row: Member) => isOlder(row, this.#known.get(row.node))
    this.#read = members.filter((row) => !isOld(row))
    const old = members.filter(isOld).map(({ node }) => ({ node, reason: OLDER }))
    return { members: [...this.#read], faults: [...faults, ...old] }
  }

  /** A beat has counted, and what was read before with it. */
  lasts(own: Member): void {
    for (const row of [...this.#read, own]) this.#known.set(row.node, row)
  }

  /** The connection has ended. */
  forgetRead(): void {
    this.#read = []
  }
}

const FORKED = 'has not changed for longer than a lease, and yet the node says by its link that it has one'
const OLDER = 'is an earlier one that was put back'

function isOlder(row: Member, known: Member | undefined): boolean {
  if (row.incarnation !== known?.incarnation) return row.incarnation < (known?.incarnation ?? 0)
  return row.alive && (!known.alive || row.beat < known.beat)
}
