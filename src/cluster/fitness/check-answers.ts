import { DatabaseError } from 'pg'
import { limits } from '../../base/limits/limits.js'
import { type CheckBench, type DatabaseCheck, pass, segmentAfter, fail } from './check-bench.js'
import type { Member } from '../members/member.js'
import { NodeTable } from '../database/nodes.js'
import type { StoredSegment } from '../database/register.js'
import type { Written } from '../database/session.js'

/* Checks of the answers of a database, and of when other connections see a write. */

/** Errors have the SQLSTATE codes that a node relies on. */
export const codesCheck: DatabaseCheck = {
  subject: 'error codes',
  async run(bench) {
    const session = await bench.session()
    const { begin } = bench.statements
    const row = [bench.newShard(), 0, Buffer.alloc(32), 'base', Buffer.alloc(0), null]
    const readOnlyWrite = async () => {
      await session.write('BEGIN READ ONLY', [])
      try {
        await session.write(begin, row)
      } finally {
        await session.write('ROLLBACK', [])
      }
    }
    await session.write(begin, row)
    const cases: [string, string, () => Promise<unknown>][] = [
      ['23505', 'a duplicate key', () => session.write(begin, row)],
      ['25006', 'a write in a read-only transaction', readOnlyWrite],
      ['42P01', 'a missing table', () => session.write(`DELETE FROM ${bench.prefix}_none`, [])],
    ]
    for (const [expected, about, run] of cases) {
      const code = await codeOf(run)
      if (code !== expected) return fail(`Expected ${expected} for ${about}, got ${code}`)
    }
    return pass(`${cases.map(([code, about]) => `${code} for ${about}`).join(', ')}`)
  },
}

async function codeOf(run: () => Promise<unknown>): Promise<string> {
  try {
    await run()
    return 'no error'
  } catch (error) {
    if (error instanceof DatabaseError) return error.code ?? 'an error without a code'
    throw error
  }
}

/** A warning reaches the client: with one, a server reports that it has stopped waiting for its standby. */
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
      return {
        level: 'warn',
        detail: `Not tested, because the database cannot raise a warning on request: ${error.message}`,
      }
    }
    if (warned) return pass('Warnings reach the client')
    return fail(
      'Warnings do not reach the client: a commit that a standby may lack would count as durable. Check whether a pooler drops them',
    )
  },
}

/** Other connections see a row as soon as it is acknowledged, and never see an uncommitted one. */
export const visibilityCheck: DatabaseCheck = {
  subject: 'visibility',
  async run(bench) {
    const base = await bench.begin()
    const [register, session, reader] = [bench.register(), await bench.session(), await bench.session()]
    const { read, append } = bench.statements
    const all = [base.shard, -1, 0, 1_000, limits.clusterReadBytes]
    const seen = async () => (await reader.rows(read, all)).length
    let before = base
    for (let round = 1; round <= limits.clusterCheckSegments; round++) {
      const next = segmentAfter(before, `seen ${round}`)
      const { kind } = await register.append(before, next)
      if (kind !== 'durable') return fail(`An append was ${kind}: expected durable`)
      if ((await seen()) !== round + 1) return fail('Another connection does not see an acknowledged row')
      before = next
    }
    const count = await seen()
    const next = segmentAfter(before, 'not committed')
    await session.write('BEGIN', [])
    const row = [base.shard, before.number, before.hash, next.hash, next.header, Buffer.alloc(0), null]
    await session.write(append, row)
    if ((await seen()) !== count) return fail('Another connection sees an uncommitted row')
    await session.write('ROLLBACK', [])
    if ((await seen()) !== count) return fail('A row that was rolled back still exists')
    return pass('Other connections see acknowledged rows immediately, and never uncommitted ones')
  },
}

/** A segment of several rows, including rewrites of earlier rows, is written atomically. */
export const transactionsCheck: DatabaseCheck = {
  subject: 'transactions',
  async run(bench) {
    const base = await bench.begin()
    const register = bench.register()
    const first = segmentAfter(base, 'a body')
    const body = Buffer.from('to be erased')
    const [written, erased] = [{ blocks: body, state: null }, Buffer.alloc(body.length)]
    await register.append(base, { ...first, parts: [written, written] })
    const erasing = segmentAfter(first, 'erasing')
    const rewrite = { segment: 1, part: 0, hash: first.hash, blocks: erased }
    const refused = await codeOf(() => failingTransaction(bench, first, erasing))
    const blocksOf = async () => (await bench.rowsOf(base.shard)).map(({ blocks }) => blocks)
    const left = (await blocksOf()).slice(1)
    if (refused !== '23505' || left.length !== 2 || !left.every((blocks) => blocks.equals(body)))
      return fail('A failed transaction left changes behind')
    const { kind } = await register.append(first, { ...erasing, rewrites: [rewrite] })
    const [, one, other, last] = await blocksOf()
    const isDone = one?.equals(erased) === true && other?.equals(body) === true && last !== undefined
    if (kind !== 'durable' || !isDone)
      return fail(`A transaction of several rows was ${kind}, but its rows do not match that outcome`)
    return pass('Several rows are written atomically')
  },
}

/** Appends a segment, rewrites another one, and then fails. */
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

/**
 * Compare-and-set on rows of nodes: exactly one of several concurrent changes succeeds, and no heartbeat is
 * lost.
 */
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
      return fail('Several connections inserted the same name: expected exactly one to succeed')
    const counts = await Promise.all(tables.map((nodes) => countHeartbeats(nodes, own)))
    const [row] = (await table?.all())?.members ?? []
    const counted = counts.reduce((sum, count) => sum + count, 0)
    if (row?.heartbeat !== counted)
      return fail(`${counted} updates were acknowledged, but ${row?.heartbeat} took effect`)
    const expelled = await Promise.all(tables.map((nodes) => nodes.expel(row)))
    if (expelled.filter(Boolean).length !== 1)
      return fail('Several connections changed the same version of a row: expected exactly one')
    return pass('Of several concurrent changes to a row exactly one succeeds, and no update is lost')
  },
}

/**
 * @returns how many heartbeats were acknowledged, each sent after the last one that the connection has seen
 */
async function countHeartbeats(nodes: NodeTable, own: Member): Promise<number> {
  let [counted, last] = [0, own]
  for (let tries = 0; tries < 5; tries++) {
    const next: Member = { ...last, heartbeat: last.heartbeat + 1 }
    if ((await nodes.heartbeat(last, next)) === 'counted') [counted, last] = [counted + 1, next]
    else last = (await nodes.all()).members[0] ?? last
  }
  return counted
}
