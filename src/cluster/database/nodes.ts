import { type Clock, systemClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import { type Checked, fields, isBytes, isFlag, isNumber, listOf, textUpTo } from '../../base/shape.js'
import type { Member, MemberAbout, MemberRows } from '../members/member.js'
import type { HeartbeatOutcome } from '../members/membership.js'
import { failureOf } from './database-errors.js'
import { hasMac, rowMac, type RowSecret, type RowValue } from './row-mac.js'
import { type Parameter, parameterOf, type Session, type Written } from './session.js'
import type { ClusterStatements } from './statements.js'

const TABLE = 'nodes'

/**
 * The nodes of a cluster and their heartbeats. Each row has a MAC, so only a node with the master seed can
 * write one: a node writes its own row, and `alive` of a node that it expels. Each change is a
 * compare-and-set on the whole row as it was read.
 */
export class NodeTable {
  readonly #session: Session
  readonly #statements: ClusterStatements['nodes']
  readonly #secret: RowSecret
  readonly #clock: Clock
  #databaseMs: number | undefined

  constructor(
    session: Session,
    { nodes }: ClusterStatements,
    { secret, clock = systemClock }: { secret: RowSecret; clock?: Clock },
  ) {
    this.#session = session
    this.#statements = nodes
    this.#secret = secret
    this.#clock = clock
  }

  /** The database's time of day at the last write of a row, Unix milliseconds. */
  get databaseMs(): number | undefined {
    return this.#databaseMs
  }

  /** Closes the connection immediately. */
  drop(): void {
    this.#session.drop()
  }

  /**
   * All nodes that are alive, and as many more as one read returns.
   * @throws Error if more nodes are alive than a cluster can have: the read would omit some, which then look
   * dead
   */
  async all(): Promise<MemberRows> {
    const found = await this.#stored('')
    const isVerified = ({ row, mac }: Stored) =>
      hasMac(this.#secret, { table: TABLE, values: valuesOf(row), mac })
    const rows = found.filter(isVerified).map(({ row }) => row)
    if (rows.filter(({ alive }) => alive).length > limits.clusterNodesMax)
      throw tooManyAlive(limits.clusterNodesMax)
    return {
      members: rows.toSorted((one, other) => (one.node < other.node ? -1 : 1)),
      faults: found
        .filter((one) => !isVerified(one))
        .map(({ row: { node } }) => ({ node, reason: UNVERIFIED })),
    }
  }

  /**
   * Joins under a name that no live node has. A row that does not verify is ignored and replaced.
   * @returns the row; undefined if a node of that name is alive, or another node joined first
   */
  async join(about: MemberAbout): Promise<Member | undefined> {
    const before = (await this.#stored(about.node)).find(({ row }) => row.node === about.node)
    const isVerified =
      before !== undefined &&
      hasMac(this.#secret, { table: TABLE, values: valuesOf(before.row), mac: before.mac })
    if (isVerified && before.row.alive) return undefined
    const ended = isVerified ? before.row.incarnation : 0
    const incarnation = Math.max(ended + 1, this.#clock())
    const row: Member = { ...about, incarnation, ended, heartbeat: 0, alive: true, report: '{}' }
    const isThere = before === undefined ? this.#add(row) : this.#replace(before.columns, row)
    return (await isThere).rows === 1 ? row : undefined
  }

  async #add(row: Member): Promise<Written> {
    try {
      return await this.#session.write(this.#statements.add, this.#columnsOf(row))
    } catch (error) {
      // Another node of that name joined first.
      if (failureOf(error) === 'taken') return { rows: 0, warned: false }
      throw error
    }
  }

  /** Replaces the row that this node has written last. */
  async heartbeat(last: Member, next: Member): Promise<HeartbeatOutcome> {
    const { rows, warned } = await this.#replace(this.#columnsOf(last), next)
    if (rows !== 1) return 'missed'
    return warned ? 'unsafe' : 'counted'
  }

  /**
   * @param seen the row as it was read
   * @returns whether that heartbeat was the last one of the node, permanently
   */
  async expel(seen: Member): Promise<boolean> {
    if (!seen.alive) return false
    const { rows, warned } = await this.#replace(this.#columnsOf(seen), { ...seen, alive: false })
    return rows === 1 && !warned
  }

  async #replace(before: readonly Parameter[], row: Member): Promise<Written> {
    const parameters = [...this.#columnsOf(row), ...before.slice(1)]
    const written = await this.#session.write(this.#statements.replace, parameters)
    this.#databaseMs = isTime(written.first) ? written.first.now : undefined
    return written
  }

  /** In the order of the table's columns. */
  #columnsOf(row: Member): Parameter[] {
    const values = valuesOf(row)
    return [...values.map(parameterOf), rowMac(this.#secret, TABLE, values)]
  }

  /** @param own the node whose row the result includes, if there is one */
  async #stored(own: string): Promise<Stored[]> {
    const rows = await this.#session.rows(this.#statements.all, [limits.clusterNodeRowsMax, own])
    if (!areRows(rows)) throw new Error('Malformed node row')
    // Rows that do not verify may have displaced rows of live nodes.
    if (rows.length === limits.clusterNodeRowsMax && rows.at(-1)?.alive === true)
      throw tooManyAlive(limits.clusterNodeRowsMax)
    return rows.map((found) => {
      const { incarnation, ended, beat, mac, ...more } = found
      const { format_max: formatMax, settings_digest: settingsDigest, owns: report, ...others } = more
      const row: Member = {
        ...others,
        incarnation: Number(incarnation),
        ended: Number(ended),
        heartbeat: Number(beat),
        formatMax,
        settingsDigest,
        report,
      }
      return { row, mac, columns: columnsAsStored(found) }
    })
  }
}

/** A row as the table has it, not verified. */
interface Stored {
  row: Member
  mac: Uint8Array
  columns: Parameter[]
}

const UNVERIFIED = 'does not verify: it was changed, or written by another cluster or without the master seed'

const tooManyAlive = (most: number) =>
  new Error(
    `its table of nodes has ${most} or more rows marked alive: remove the rows that are not nodes of this cluster`,
  )

function valuesOf(row: Member): RowValue[] {
  const { node, incarnation, ended, heartbeat, alive, address, formatMax, settingsDigest, report } = row
  return [node, incarnation, ended, heartbeat, alive, address, formatMax, settingsDigest, report]
}

type StoredNodeRow = Checked<typeof areRows>[number]

/** The columns of a row without conversion; 64-bit numbers are text. */
function columnsAsStored(found: StoredNodeRow): Parameter[] {
  const { node, incarnation, ended, beat, alive, address, format_max, settings_digest, owns, mac } = found
  const texts = [node, incarnation, ended, beat, alive, address, format_max, settings_digest, owns]
  return [...texts.map(parameterOf), Buffer.from(mac)]
}

const isTime = fields({ now: isNumber })
const isName = textUpTo(limits.clusterNameCharsMax)
const isAbout = textUpTo(limits.clusterReportCharsMax)

const areRows = listOf(
  fields({
    node: isName,
    incarnation: isName,
    ended: isName,
    beat: isName,
    alive: isFlag,
    address: isName,
    format_max: isNumber,
    settings_digest: isAbout,
    owns: isAbout,
    mac: isBytes,
  }),
)

interface SegmentWriter {
  node: string
  incarnation: number
}

/**
 * Decides which writers of segments are alive. A writer has ended if a verified row says so: its own row, or
 * the row of the next incarnation of its name, which joined later. If no verified row mentions a writer, it
 * may still hold a lease: it counts as alive until that lease must have expired, counted from when its row
 * was first missed.
 */
export class Writers {
  /**
   * How long a node may answer after its last counted heartbeat, with the margin for clock drift,
   * milliseconds.
   */
  readonly #graceMs: number
  /** When the row of a writer was first missed. */
  readonly #unknownSinceMs = new Map<string, number>()

  constructor(graceMs: number) {
    this.#graceMs = graceMs
  }

  /** @param readAtMs when the read of the rows had ended, monotonic clock */
  isAlive(writer: SegmentWriter, { members }: MemberRows, readAtMs: number): boolean {
    const { node, incarnation } = writer
    const name = `${node} ${incarnation}`
    const row = members.find((one) => one.node === node)
    const isKnown = row !== undefined && (row.incarnation === incarnation || row.ended === incarnation)
    if (isKnown) {
      this.#unknownSinceMs.delete(name)
      return row.incarnation === incarnation && row.alive
    }
    const sinceMs = this.#unknownSinceMs.get(name) ?? readAtMs
    this.#unknownSinceMs.set(name, sinceMs)
    return readAtMs - sinceMs < this.#graceMs
  }
}
