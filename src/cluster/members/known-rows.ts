import type { Member, MemberRows } from './member.js'

/**
 * Rows that are known permanently. A row that was read may be lost with the database server, until a later
 * heartbeat of this node counts on the same connection. A row older than a known one was put back.
 */
export class KnownRows {
  readonly #known = new Map<string, Member>()
  #read: readonly Member[] = []

  /** Remembers the rows that were read, and rejects those older than known ones. */
  accept({ members, faults }: MemberRows): MemberRows {
    const isOld = (row: Member) => isOlder(row, this.#known.get(row.node))
    this.#read = members.filter((row) => !isOld(row))
    const old = members.filter(isOld).map(({ node }) => ({ node, reason: OLDER }))
    return { members: [...this.#read], faults: [...faults, ...old] }
  }

  /** A heartbeat has counted, which makes the rows read before it permanent. */
  confirm(own: Member): void {
    for (const row of [...this.#read, own]) this.#known.set(row.node, row)
  }

  /** Discards the rows that were read, because the connection has ended. */
  forgetRead(): void {
    this.#read = []
  }
}

const OLDER = 'is an older version that was put back'

function isOlder(row: Member, known: Member | undefined): boolean {
  if (row.incarnation !== known?.incarnation) return row.incarnation < (known?.incarnation ?? 0)
  return row.alive && (!known.alive || row.heartbeat < known.heartbeat)
}
