import { isFlag, isNumber, isText, listOf, members } from '../../base/shape.js'
import { failureOf } from './answers.js'
import { Session } from './session.js'
import type { ClusterStatements } from './statements.js'

/** A row of the table of nodes. */
export interface NodeRow {
  node: string
  /** Another number each time that it joins. */
  incarnation: number
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

/** Which beat is meant: the row is changed only where it is still that one. */
export type NodeAt = Pick<NodeRow, 'node' | 'incarnation' | 'beat'>

/**
 * The nodes of a cluster and their beats. What a change found is its count of rows: each names the row as it was seen.
 */
export class NodeTable {
  readonly #session: Session
  readonly #statements: ClusterStatements['nodes']

  constructor(session: Session, { nodes }: ClusterStatements) {
    this.#session = session
    this.#statements = nodes
  }

  /** That of the server that takes writes, by a connection of its own. */
  static async open(urls: readonly string[], statements: ClusterStatements): Promise<NodeTable> {
    return new NodeTable(await Session.open(urls), statements)
  }

  /** Ends the connection at once. */
  drop(): void {
    this.#session.drop()
  }

  /** All nodes, by name. */
  async all(): Promise<NodeRow[]> {
    const rows = await this.#session.rows(this.#statements.all)
    if (!areRows(rows)) throw new Error('Expected the rows of nodes that a cluster has')
    return rows.map(
      ({ incarnation, beat, format_max: formatMax, settings_digest: settingsDigest, ...more }) => ({
        ...more,
        incarnation: Number(incarnation),
        beat: Number(beat),
        formatMax,
        settingsDigest,
      }),
    )
  }

  /**
   * Joins, under a name that nobody has who is alive.
   * @returns the number of this incarnation; undefined where a node of that name is alive
   */
  async join({ node, address, formatMax, settingsDigest }: Joining): Promise<number | undefined> {
    const about = [node, address, formatMax, settingsDigest]
    const again = await this.#session.write(this.#statements.rejoin, about)
    if (again.rows === 0 && !(await this.#add(about))) return undefined
    const own = (await this.all()).find((one) => one.node === node)
    return own?.incarnation
  }

  async #add(about: (string | number)[]): Promise<boolean> {
    try {
      return (await this.#session.write(this.#statements.add, about)).rows === 1
    } catch (error) {
      // Another one of that name came first.
      if (failureOf(error) === 'taken') return false
      throw error
    }
  }

  /** @returns whether it counts: not where the node was expelled, nor where the commit may be lost */
  async beat({ node, incarnation, owns }: Pick<NodeRow, 'node' | 'incarnation' | 'owns'>): Promise<boolean> {
    const { rows, warned } = await this.#session.write(this.#statements.beat, [node, incarnation, owns])
    return rows === 1 && !warned
  }

  /** @returns whether that was its last beat, and is so for good */
  async expel({ node, incarnation, beat }: NodeAt): Promise<boolean> {
    const { rows, warned } = await this.#session.write(this.#statements.expel, [node, incarnation, beat])
    return rows === 1 && !warned
  }
}

const areRows = listOf(
  members<{
    node: string
    incarnation: string
    beat: string
    alive: boolean
    address: string
    format_max: number
    settings_digest: string
    owns: string
  }>({
    node: isText,
    incarnation: isText,
    beat: isText,
    alive: isFlag,
    address: isText,
    format_max: isNumber,
    settings_digest: isText,
    owns: isText,
  }),
)
