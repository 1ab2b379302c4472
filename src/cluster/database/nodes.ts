import { type Clock, systemClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import { type Checked, fields, isBytes, isFlag, isNumber, listOf, textUpTo } from '../../base/shape.js'
import { failureOf } from './trouble.js'
import { hasMac, rowMac, type RowSecret, type RowValue } from './row-mac.js'
import { type Parameter, parameterOf, type Session, type Written } from './session.js'
import type { ClusterStatements } from './statements.js'

/** A row of the table of nodes. */
export interface NodeRow {
  node: string
  /** Another number each time that it joins, and a later one: Unix milliseconds, if the clock did not go back. */
  incarnation: number
  /** The one that it had before, which had certainly ended when it joined; 0 where it joined without a row. */
  ended: number
  beat: number
  alive: boolean
  /** Where others reach it. */
  address: string
  /** The newest format of segments that it reads. */
  formatMax: number
  settingsDigest: string
  /** What it owns, for people: JSON of shards and terms. */
  owns: string
}

/** What a node says of itself when it joins. */
export type Joining = Pick<NodeRow, 'node' | 'address' | 'formatMax' | 'settingsDigest'>

/** A row that is not believed, by the name that it has, and why: the end of a sentence that begins with the row. */
export interface RowFault {
  node: string
  reason: string
}

/** What the table has. */
export interface NodeRows {
  /** Those that verify, by name. */
  members: NodeRow[]
  faults: RowFault[]
}

/**
 * What became of a beat: `counted`; `unsafe`, it is there and may be lost yet; `missed`, the row was another one than the node knew.
 */
export type Beaten = 'counted' | 'unsafe' | 'missed'

const TABLE = 'nodes'

/**
 * The nodes of a cluster and their beats. Each row has a MAC, so that only a node with the master seed can write one: it writes its own,
 * and `alive` of another one that it expels. Each change is a compare-and-set on the whole row as it was seen.
 */
export class NodeTable {
  readonly #session: Session
  readonly #statements: ClusterStatements['nodes']
  readonly #secret: RowSecret
  readonly #clock: Clock

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

  /** Ends the connection at once. */
  drop(): void {
    this.#session.drop()
  }

  /**
   * All nodes that are alive, and as many more as are read at once.
   * @throws Error where more are alive than a cluster can have: some of them would be left out, and taken for dead
   */
  async all(): Promise<NodeRows> {
    const found = await this.#stored('')
    const isTrue = ({ row, mac }: Stored) =>
      hasMac(this.#secret, { table: TABLE, values: valuesOf(row), mac })
    const rows = found.filter(isTrue).map(({ row }) => row)
    if (rows.filter(({ alive }) => alive).length > limits.clusterNodesMax)
      throw tooMany(limits.clusterNodesMax)
    return {
      members: rows.toSorted((one, other) => (one.node < other.node ? -1 : 1)),
      faults: found.filter((one) => !isTrue(one)).map(({ row: { node } }) => ({ node, reason: UNTRUE })),
    }
  }

  /**
   * Joins, under a name that nobody has who is alive. A row that does not verify counts for nothing, and is replaced.
   * @returns the row; undefined where a node of that name is alive, or came first
   */
  async join(about: Joining): Promise<NodeRow | undefined> {
    const before = (await this.#stored(about.node)).find(({ row }) => row.node === about.node)
    const isTrue =
      before !== undefined &&
      hasMac(this.#secret, { table: TABLE, values: valuesOf(before.row), mac: before.mac })
    if (isTrue && before.row.alive) return undefined
    const ended = isTrue ? before.row.incarnation : 0
    const incarnation = Math.max(ended + 1, this.#clock())
    const row = { ...about, incarnation, ended, beat: 0, alive: true, owns: '{}' }
    const isThere = before === undefined ? this.#add(row) : this.#replace(before.columns, row)
    return (await isThere).rows === 1 ? row : undefined
  }

  async #add(row: NodeRow): Promise<Written> {
    try {
      return await this.#session.write(this.#statements.add, this.#columnsOf(row))
    } catch (error) {
      // Another one of that name came first.
      if (failureOf(error) === 'taken') return { rows: 0, warned: false }
      throw error
    }
  }

  /** Writes a row in place of the one that the node has written last. */
  async beat(last: NodeRow, next: NodeRow): Promise<Beaten> {
    const { rows, warned } = await this.#replace(this.#columnsOf(last), next)
    if (rows !== 1) return 'missed'
    return warned ? 'unsafe' : 'counted'
  }

  /** @param seen its row @returns whether that was its last beat, and is so for good */
  async expel(seen: NodeRow): Promise<boolean> {
    if (!seen.alive) return false
    const { rows, warned } = await this.#replace(this.#columnsOf(seen), { ...seen, alive: false })
    return rows === 1 && !warned
  }

  #replace(before: readonly Parameter[], row: NodeRow): Promise<Written> {
    return this.#session.write(this.#statements.replace, [...this.#columnsOf(row), ...before.slice(1)])
  }

  /** In the order of the table's columns. */
  #columnsOf(row: NodeRow): Parameter[] {
    const values = valuesOf(row)
    return [...values.map(parameterOf), rowMac(this.#secret, TABLE, values)]
  }

  /** @param own the node whose row is among them, if it has one */
  async #stored(own: string): Promise<Stored[]> {
    const rows = await this.#session.rows(this.#statements.all, [limits.clusterNodeRowsMax, own])
    if (!areRows(rows)) throw new Error('Expected the rows of nodes that a cluster has')
    // Rows that do not verify may stand in the place of others that are alive.
    if (rows.length === limits.clusterNodeRowsMax && rows.at(-1)?.alive === true)
      throw tooMany(limits.clusterNodeRowsMax)
    return rows.map((found) => {
      const { incarnation, ended, beat, mac, ...more } = found
      const { format_max: formatMax, settings_digest: settingsDigest, ...others } = more
      const numbers = { incarnation: Number(incarnation), ended: Number(ended), beat: Number(beat) }
      const row = { ...others, ...numbers, formatMax, settingsDigest }
      return { row, mac, columns: storedColumns(found) }
    })
  }
}

/** A row as it is there, whoever wrote it. */
interface Stored {
  row: NodeRow
  mac: Uint8Array
  columns: Parameter[]
}

const UNTRUE = 'does not verify: it was changed, or written by another cluster or without the master seed'

const tooMany = (most: number) =>
  new Error(
    `its table of nodes has ${most} or more that are alive: remove those that are not nodes of this cluster`,
  )

function valuesOf(row: NodeRow): RowValue[] {
  const { node, incarnation, ended, beat, alive, address, formatMax, settingsDigest, owns } = row
  return [node, incarnation, ended, beat, alive, address, formatMax, settingsDigest, owns]
}

type StoredNodeRow = Checked<typeof areRows>[number]

/** 64-bit numbers are texts, and stay as they are. */
function storedColumns(found: StoredNodeRow): Parameter[] {
  const { node, incarnation, ended, beat, alive, address, format_max, settings_digest, owns, mac } = found
  const texts = [node, incarnation, ended, beat, alive, address, format_max, settings_digest, owns]
  return [...texts.map(parameterOf), Buffer.from(mac)]
}

const isName = textUpTo(limits.clusterNameCharsMax)
const isAbout = textUpTo(limits.clusterAboutCharsMax)

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

/** A node that wrote a segment, and as which incarnation. */
interface SegmentWriter {
  node: string
  incarnation: number
}

/**
 * Which writers of segments are alive. One has ended where a row says so that verifies: its own, or that of the next incarnation of its
 * name, which joined behind it. What no row says anything of, as its row is missing or does not verify, may hold a lease yet: it
 * is alive until that must be over, from when its row was missed.
 */
export class Writers {
  /** How long a node may answer whose beats do not count, milliseconds, with the margin of the clocks. */
  readonly #patienceMs: number
  /** Since when nothing is known of a writer. */
  readonly #unknownSinceMs = new Map<string, number>()

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs
  }

  /** @param readAtMs when the reading of the rows had ended, of a clock that only goes on */
  isAlive(writer: SegmentWriter, { members }: NodeRows, readAtMs: number): boolean {
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
    return readAtMs - sinceMs < this.#patienceMs
  }
}
