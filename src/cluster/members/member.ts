/** A node, as its row in the table of nodes describes it. */
export interface Member {
  node: string
  /** Grows each time the node joins: Unix milliseconds, unless the clock was set back. */
  incarnation: number
  /** The previous incarnation, which had ended when the node joined; 0 if it joined without a row. */
  ended: number
  heartbeat: number
  alive: boolean
  /** Where clients reach it. */
  address: string
  /** The newest format of segments that it reads. */
  formatMax: number
  settingsDigest: string
  /** What the node reports, JSON; the column `owns`. */
  report: string
}

/** What a node states about itself when it joins. */
export type MemberAbout = Pick<Member, 'node' | 'address' | 'formatMax' | 'settingsDigest'>

/** A rejected row: the name in it, and the reason, a predicate whose subject is the row. */
export interface RowFault {
  node: string
  reason: string
}

/** The rows of the table of nodes: verified ones by name, and faults of the rest. */
export interface MemberRows {
  members: Member[]
  faults: RowFault[]
}
