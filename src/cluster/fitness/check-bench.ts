import { hash, randomBytes } from 'node:crypto'
import { type PartRow, SegmentRegister, type StoredSegment } from '../database/register.js'
import type { RowSecret } from '../database/row-mac.js'
import { Session } from '../database/session.js'
import { type ClusterStatements, statementsOf } from '../database/statements.js'

/** What one check found. */
export interface CheckResult {
  level: 'ok' | 'warn' | 'fail'
  detail: string
}

/** A check of a database, in tables of its own. */
export interface DatabaseCheck {
  /** What it is about, in a word or two. */
  subject: string
  /** @throws Error where the database refuses what it should do */
  run(bench: CheckBench): Promise<CheckResult>
}

export function fine(detail: string): CheckResult {
  return { level: 'ok', detail }
}

export function wrong(detail: string): CheckResult {
  return { level: 'fail', detail }
}

/** What checks work with: connections, and tables that nobody else uses. */
export class CheckBench {
  readonly urls: readonly string[]
  /** Of the names of its tables. */
  readonly prefix = `strandfast_check_${randomBytes(6).toString('hex')}`
  readonly statements: ClusterStatements = statementsOf(this.prefix)
  /** Of rows of its tables. */
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

  /** Another writer, by a connection of its own. */
  register(): SegmentRegister {
    const { urls, statements } = this
    const nowMs = () => performance.now()
    const register = new SegmentRegister({ urls, statements, nowMs, chance: Math.random })
    this.#registers.add(register)
    return register
  }

  /** The number of a shard that nobody has used. */
  newShard(): number {
    return (this.#shards += 1)
  }

  /** Begins the log of another shard. @returns its segment 0 */
  async begin(): Promise<StoredSegment> {
    const base = segmentBehind({ shard: this.newShard(), number: -1, hash: Buffer.alloc(32) }, 'base')
    const register = this.register()
    await register.begin(base)
    await register.close()
    this.#registers.delete(register)
    return base
  }

  /** All rows of a shard. */
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

  /** Ends all connections, whatever they wait for. */
  drop(): void {
    for (const one of [...this.#sessions, ...this.#registers]) one.drop()
    this.#sessions.clear()
    this.#registers.clear()
  }
}

/** A segment that is chained to the one before it. */
export function segmentBehind(
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

/** What is wrong with the rows of a log that has to be one chain. @returns undefined where nothing is */
export function brokenChain(rows: readonly PartRow[]): string | undefined {
  let before: Buffer = Buffer.alloc(32)
  for (const [index, { segment, part, hash: own, header }] of rows.entries()) {
    if (segment !== index || part !== 0) return `segment ${segment} stands where ${index} should be`
    const chained = hash('sha256', Buffer.concat([before, Buffer.from(header)]), 'buffer')
    if (!own.equals(chained)) return `segment ${segment} is not chained to the one before it`
    before = own
  }
  return undefined
}
