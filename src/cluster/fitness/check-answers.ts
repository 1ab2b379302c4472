import { DatabaseError } from 'pg'
import { limits } from '../../base/limits/limits.js'
import { type CheckBench, type DatabaseCheck, fine, segmentBehind, wrong } from './check-bench.js'
import { type NodeRow, NodeTable } from '../database/nodes.js'
import type { StoredSegment } from '../database/register.js'
import type { Written } from '../database/session.js'

/* What the answers of a database have to say, and when what it took has to be seen. */

/** Failures have the codes by which a node tells them apart. */
export const codesCheck: DatabaseCheck = {
  subject: 'error codes',
  async run(bench) {
    const session = await bench.session()
    const { begin } = bench.statements
    const row = [bench.newShard(), 0, Buffer.alloc(32), 'base', Buffer.alloc(0), null]
    const onlyReading = async () => {
      await session.write('BEGIN READ ONLY', [])
      try {
        await session.write(begin, row)
      } finally {
        await session.write('ROLLBACK', [])
      }
    }
    await session.write(begin, row)
    const cases: [string, string, () => Promise<unknown>][] = [
      ['23505', 'a key that is there', () => session.write(begin, row)],
      ['25006', 'a write in a transaction that only reads', onlyReading],
      ['42P01', 'a table that is not there', () => session.write(`DELETE FROM ${bench.prefix}_none`, [])],
    ]
    for (const [expected, about, run] of cases) {
      const code = await codeOf(run)
      if (code !== expected) return wrong(`For ${about} it answers ${code}: expected ${expected}`)
    }
    return fine(`${cases.map(([code, about]) => `${code} for ${about}`).join(', ')}`)
  },
}

async function codeOf(run: () => Promise<unknown>): Promise<string> {
  try {
    await run()
    return 'as if it was done'
  } catch (error) {
    if (error instanceof DatabaseError) return error.code ?? 'without a code'
    throw error
  }
}

/** A warning reaches the client: by it a server says that it stopped waiting for its standby. */
export const warningsCheck: DatabaseCheck = {
  subject: 'warnings',
  async run(bench) {
    const session = await bench.session()
    let warned: boolean
    try {
      const raise = "DO $$ BEGIN RAISE WARNING 'strandfast cluster check'; END $$"
      warned = (await session.write(raise, [])).warned
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error
      return { level: 'warn', detail: `Not tried, as it raises none on request: ${error.message}` }
    }
    if (warned) return fine('They arrive')
    return wrong(
      'They do not arrive: a commit that a standby may not have would be taken for safe. Look for a pooler in between, or ask for them there',
    )
  },
}

/** What one connection was told of, another one sees at once, and nothing that is not committed. */
export const visibilityCheck: DatabaseCheck = {
  subject: 'what is seen',
  async run(bench) {
    const base = await bench.begin()
    const [register, session, reader] = [bench.register(), await bench.session(), await bench.session()]
    const { read, append } = bench.statements
    const all = [base.shard, -1, 0, 1_000, limits.clusterReadBytes]
    const seen = async () => (await reader.rows(read, all)).length
    let before = base
    for (let round = 1; round <= limits.clusterCheckSegments; round++) {
      const next = segmentBehind(before, `seen ${round}`)
      const { kind } = await register.append(before, next)
      if (kind !== 'durable') return wrong(`An append was ${kind}`)
      if ((await seen()) !== round + 1)
        return wrong('A row that was acknowledged is not seen by another connection')
      before = next
    }
    const count = await seen()
    const next = segmentBehind(before, 'not committed')
    await session.write('BEGIN', [])
    const row = [base.shard, before.number, before.hash, next.hash, next.header, Buffer.alloc(0), null]
    await session.write(append, row)
    if ((await seen()) !== count) return wrong('A row that is not committed is seen by another connection')
    await session.write('ROLLBACK', [])
    if ((await seen()) !== count) return wrong('A row that was rolled back is there')
    return fine('What was acknowledged is seen by others at once, and what was not committed by nobody')
  },
}

/** A segment of several rows, and with it the rewriting of others, is done whole or not at all. */
export const transactionsCheck: DatabaseCheck = {
  subject: 'transactions',
  async run(bench) {
    const base = await bench.begin()
    const register = bench.register()
    const first = segmentBehind(base, 'a body')
    const body = Buffer.from('to be erased')
    const [written, erased] = [{ blocks: body, state: null }, Buffer.alloc(body.length)]
    await register.append(base, { ...first, parts: [written, written] })
    const erasing = segmentBehind(first, 'erasing')
    const rewrite = { segment: 1, part: 0, hash: first.hash, blocks: erased }
    const refused = await codeOf(() => failingTransaction(bench, first, erasing))
    const blocksOf = async () => (await bench.rowsOf(base.shard)).map(({ blocks }) => blocks)
    const left = (await blocksOf()).slice(1)
    if (refused !== '23505' || left.length !== 2 || !left.every((blocks) => blocks.equals(body)))
      return wrong('A transaction that failed has left something behind')
    const { kind } = await register.append(first, { ...erasing, rewrites: [rewrite] })
    const [, one, other, last] = await blocksOf()
    const isDone = one?.equals(erased) === true && other?.equals(body) === true && last !== undefined
    if (kind !== 'durable' || !isDone)
      return wrong(`A transaction of several rows was ${kind}, and they are not as it says`)
    return fine('Several rows are written together, or none of them')
  },
}

/** Appends a segment and rewrites another one, and then fails. */
async function failingTransaction(
  bench: CheckBench,
  before: StoredSegment,
  next: StoredSegment,
): Promise<Written> {
  const { append, rewrite, begin } = bench.statements
  const { shard, number, hash } = before
  const session = await bench.session()
  return session.transaction(async () => {
    await session.write(append, [shard, number, hash, next.hash, next.header, Buffer.alloc(0), null])
    await session.write(rewrite, [shard, number, 0, hash, Buffer.of(0)])
    return session.write(begin, [shard, 0, hash, '', Buffer.alloc(0), null])
  })
}

/** Rows of nodes are changed where they are as they were seen, by one of many; and no beat is lost. */
export const countersCheck: DatabaseCheck = {
  subject: 'compare and set',
  async run(bench) {
    const tables = await Promise.all(
      Array.from(
        { length: limits.clusterCheckConnections },
        async () => new NodeTable(await bench.session(), bench.statements, bench),
      ),
    )
    const [table] = tables
    const joining = { node: 'a', address: '', formatMax: 1, settingsDigest: '' }
    const joined = await Promise.all(tables.map((nodes) => nodes.join(joining)))
    const [own, ...more] = joined.filter((row) => row !== undefined)
    if (own === undefined || more.length > 0)
      return wrong('Several connections took one name at once: expected one of them to')
    const beats = await Promise.all(tables.map((nodes) => beatsOf(nodes, own)))
    const [row] = (await table?.all())?.members ?? []
    const counted = beats.reduce((sum, count) => sum + count, 0)
    if (row?.beat !== counted)
      return wrong(`Of ${counted} updates that were acknowledged ${row?.beat} are there`)
    const expelled = await Promise.all(tables.map((nodes) => nodes.expel(row)))
    if (expelled.filter(Boolean).length !== 1)
      return wrong('Several connections changed a row that only one may have seen')
    return fine('One of many changes a row that all have seen, and no update is lost')
  },
}

/** @returns how many of some beats were acknowledged, each behind the one that the connection has seen last */
async function beatsOf(nodes: NodeTable, own: NodeRow): Promise<number> {
  let [counted, last] = [0, own]
  for (let tries = 0; tries < 5; tries++) {
    const next = { ...last, beat: last.beat + 1 }
    if ((await nodes.beat(last, next)) === 'counted') [counted, last] = [counted + 1, next]
    else last = (await nodes.all()).members[0] ?? last
  }
  return counted
}
