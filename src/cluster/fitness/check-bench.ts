import { hash, randomBytes } from 'node:crypto'
import { type PartRow, SegmentRegister, type StoredSegment } from '../database/register.js'
import type { RowSecret } from '../database/row-mac.js'
import { Session } from '../database/session.js'
import { type ClusterStatements, statementsOf } from '../database/statements.js'

export interface CheckResult {
  level: 'ok' | 'warn' | 'fail'
  detail: string
}

/** A check of a database, run in temporary tables. */
export interface DatabaseCheck {
  /** The topic, in one or two words. */
  subject: string
  /** @throws Error if the database refuses a statement that a node needs */
  run(bench: CheckBench): Promise<CheckResult>
}

export function pass(detail: string): CheckResult {
  return { level: 'ok', detail }
}

export function fail(detail: string): CheckResult {
  return { level: 'fail', detail }
}

/** The environment of the checks: connections, and tables that nothing else uses. */
export class CheckBench {
  readonly urls: readonly string[]
  /** Prefix of the table names. */
  readonly prefix = `strandfast_check_${randomBytes(6).toString('hex')}`
  readonly statements: ClusterStatements = statementsOf(this.prefix)
  readonly secret: RowSecret = { key: randomBytes(32), cluster: this.prefix }
  readonly #sessions = new Set<Session>()
  readonly #registers = new Set<SegmentRegister>()
  #shards = 0

  constructor(urls: readonly string[]) {
    this.urls = urls
  }

  /** Another connection to the server that takes writes. */
  async session(): Promise<Session> {
    const session = await Session.open(this.urls)
    this.#sessions.add(session)
    return session
  }

  /** Another writer, on a separate connection. */
  register(): SegmentRegister {
    const { urls, statements } = this
    const nowMs = () => performance.now()
    const register = new SegmentRegister({ urls, statements, nowMs, chance: Math.random })
    this.#registers.add(register)
    return register
  }

  /** The number of an unused shard. */
  newShard(): number {
    return (this.#shards += 1)
  }

  /** Begins the log of a new shard. @returns its segment 0 */
  async begin(): Promise<StoredSegment> {
    const base = segmentAfter({ shard: this.newShard(), number: -1, hash: Buffer.alloc(32) }, 'base')
    const register = this.register()
    await register.begin(base)
    await register.close()
    this.#registers.delete(register)
    return base
  }

  async rowsOf(shard: number): Promise<PartRow[]> {
    const register = this.register()
    const rows: PartRow[] = []
    let after = { segment: -1, part: 0 }
    for (;;) {
      const found = await register.read(shard, after, { rows: 100 })
      rows.push(...found)
      const last = found.at(-1)
      if (last === undefined) break
      after = { segment: last.segment, part: last.part }
    }
    await register.close()
    this.#registers.delete(register)
    return rows
  }

  /** Closes all connections immediately. */
  drop(): void {
    for (const one of [...this.#sessions, ...this.#registers]) one.drop()
    this.#sessions.clear()
    this.#registers.clear()
  }
}

/** A segment chained to the one before it. */
export function segmentAfter(
  before: Pick<StoredSegment, 'shard' | 'number' | 'hash'>,
  header: string,
): StoredSegment {
  const { shard, number } = before
  const chained = hash('sha256', Buffer.concat([before.hash, Buffer.from(header)]), 'buffer')
  return {
    shard,
    number: number + 1,
    hash: chained,
    header,
    parts: [{ blocks: Buffer.alloc(0), state: null }],
  }
}

/** Checks that the rows of a log form one chain. @returns the first fault; undefined if there is none */
export function findChainFault(rows: readonly PartRow[]): string | undefined {
  let before: Buffer = Buffer.alloc(32)
  for (const [index, { segment, part, hash: own, header }] of rows.entries()) {
    if (segment !== index || part !== 0) return `found segment ${segment} instead of ${index}`
    const chained = hash('sha256', Buffer.concat([before, Buffer.from(header)]), 'buffer')
    if (!own.equals(chained)) return `segment ${segment} is not chained to the one before it`
    before = own
  }
  return undefined
}
