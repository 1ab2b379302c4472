import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hostUrls } from '../../src/base/host-urls.js'
import {
  type AppendOutcome,
  type Rewrite,
  SegmentRegister,
  type StoredSegment,
} from '../../src/cluster/database/register.js'
import { failureOf } from '../../src/cluster/database/database-errors.js'
import { Session } from '../../src/cluster/database/session.js'
import { statementsOf } from '../../src/cluster/database/statements.js'
import { eventually } from '../support/eventually.js'
import { startTcpProxy, type TcpProxy } from '../support/cluster/tcp-proxy.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'

const statements = statementsOf('test')

describe.skipIf(noPostgres)('the log of a shard in PostgreSQL', () => {
  let primary: TestPostgres
  let standby: TestPostgres
  let proxy: TcpProxy
  const registers: SegmentRegister[] = []

  beforeAll(async () => {
    primary = await makePostgres()
    await primary.start()
    for (const statement of statements.create) await primary.query(statement)
    standby = await makePostgres({ standbyOf: primary })
    await standby.start()
    await primary.query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
    await primary.query('SELECT pg_reload_conf()')
    proxy = await startTcpProxy(Number(new URL(primary.url).port))
  })

  afterAll(async () => {
    await Promise.all(registers.map((register) => register.close().catch(() => {})))
    await proxy?.stop()
    await standby?.remove()
    await primary?.remove()
  })

  const register = (url = primary.url) => {
    const urls = hostUrls(url)
    const created = new SegmentRegister({
      urls,
      statements,
      nowMs: () => performance.now(),
      chance: () => 0.1,
    })
    registers.push(created)
    return created
  }
  const throughProxy = () => primary.url.replace(/:\d+\//, `:${proxy.port}/`)
  let shards = 0
  /** Begins the log of another shard. */
  const begin = async () => {
    const base = segment((shards += 1), 0, 'base')
    await register().begin(base)
    return base
  }
  const rowsOf = (shard: number) => register().read(shard, { segment: -1, part: 0 }, { rows: 1_000 })

  it('appends segments after each other, and reads them back unchanged', async () => {
    const base = await begin()
    const log = register()
    const first = segment(base.shard, 1, 'first')
    const bytes = Buffer.from(Array.from({ length: 256 }, (_none, byte) => byte))
    const second = { ...segment(base.shard, 2, 'second'), parts: [{ blocks: bytes, state: null }] }
    expect(await log.append(base, first)).toEqual({ kind: 'durable' })
    expect(await log.append(first, second)).toEqual({ kind: 'durable' })
    const [, , row] = await rowsOf(base.shard)
    expect(row).toMatchObject({ segment: 2, part: 0, header: 'second', state: null })
    expect([row?.hash, row?.blocks]).toEqual([second.hash, bytes])
  })

  it('reads no further than the segment that reaches the requested bytes', async () => {
    const base = await begin()
    const log = register()
    const hundred = Buffer.alloc(100)
    const first = { ...segment(base.shard, 1, 'first'), parts: [{ blocks: hundred, state: hundred }] }
    const second = {
      ...segment(base.shard, 2, 'second'),
      parts: [
        { blocks: hundred, state: null },
        { blocks: hundred, state: null },
      ],
    }
    await log.append(base, first)
    await log.append(first, second)
    const from = { segment: 0, part: 0 }
    const read = async (rows: number, bytes: number) =>
      (await log.read(base.shard, from, { rows, bytes })).map((row) => `${row.segment}.${row.part}`)
    expect(await read(9, 199)).toEqual(['1.0'])
    expect(await read(9, 200)).toEqual(['1.0'])
    expect(await read(9, 201)).toEqual(['1.0', '2.0', '2.1'])
    expect(await read(2, 301)).toEqual(['1.0', '2.0'])
  })

  it('is not blocked by a node that was stopped in the middle of a segment of several parts', async () => {
    const base = await begin()
    const stopped = await Session.open(hostUrls(primary.url))
    const append = () => {
      const { hash, header } = segment(base.shard, 1, 'never whole')
      const { number, hash: before } = base
      return stopped.write(statements.append, [
        base.shard,
        number,
        before,
        hash,
        header,
        Buffer.alloc(0),
        null,
      ])
    }
    let running: Promise<unknown> | undefined
    let wake = () => {}
    const woken = new Promise<void>((resolve) => (wake = resolve))
    const began = new Promise<void>((resolve) => {
      running = stopped.transaction(async () => {
        await append()
        resolve()
        await woken
        return append()
      })
    })
    await began
    const other = segment(base.shard, 1, 'by the next owner')
    expect(await register().append(base, other)).toEqual({ kind: 'durable' })
    wake()
    const error: unknown = await running?.catch((thrown: unknown) => thrown)
    expect(failureOf(error)).toBe('unknown')
  })

  it('appends a segment of several parts atomically', async () => {
    const base = await begin()
    const log = register()
    const parts = ['one', 'two', 'three'].map((text) => ({ blocks: Buffer.from(text), state: Buffer.of(7) }))
    const first = { ...segment(base.shard, 1, 'in parts'), parts }
    expect(await log.append(base, first)).toEqual({ kind: 'durable' })
    expect(await log.append(base, first)).toEqual({ kind: 'durable' })
    expect(await log.append(base, { ...segment(base.shard, 1, 'another'), parts })).toEqual({
      kind: 'fenced',
    })
    expect((await rowsOf(base.shard)).map(({ part, blocks }) => [part, String(blocks)])).toEqual([
      [0, ''],
      [0, 'one'],
      [1, 'two'],
      [2, 'three'],
    ])
  })

  it('has one winner when several write the same number', async () => {
    const base = await begin()
    const logs = Array.from({ length: 6 }, () => register())
    let before: StoredSegment = base
    for (let number = 1; number <= 20; number++) {
      const rivals = logs.map((_log, rival) => segment(base.shard, number, `${number} by ${rival}`))
      const outcomes = await Promise.all(logs.map((log, rival) => log.append(before, rivals[rival] ?? base)))
      expect(outcomes.map(({ kind }) => kind).sort()).toEqual([
        'durable',
        ...logs.slice(1).map(() => 'fenced'),
      ])
      before = rivals[outcomes.findIndex(({ kind }) => kind === 'durable')] ?? base
    }
    const rows = await rowsOf(base.shard)
    expect(rows.map(({ segment: number }) => number)).toEqual(Array.from({ length: 21 }, (_none, at) => at))
  })

  it('reports "lost" if the segment before is missing', async () => {
    const base = await begin()
    const never = segment(base.shard, 1, 'never written')
    expect(await register().append(never, segment(base.shard, 2, 'behind it'))).toEqual({ kind: 'lost' })
    expect(await rowsOf(base.shard)).toHaveLength(1)
  })

  it('reports "lost" immediately, and writes nothing, if a row to be rewritten is missing', async () => {
    const base = await begin()
    const log = register()
    const first = segment(base.shard, 1, 'first')
    await log.append(base, first)
    const erasing = (rewrite: Partial<Rewrite>) => ({
      ...segment(base.shard, 2, 'erasing'),
      rewrites: [{ segment: 1, part: 0, hash: first.hash, blocks: Buffer.of(0), ...rewrite }],
    })
    // With a clock that stands still, a retry would never end.
    const urls = hostUrls(primary.url)
    const frozen = new SegmentRegister({ urls, statements, nowMs: () => 0, chance: () => 0.1 })
    registers.push(frozen)
    for (const missing of [{ part: 1 }, { segment: 7 }, { hash: base.hash }])
      expect(await frozen.append(first, erasing(missing)), JSON.stringify(missing)).toEqual({ kind: 'lost' })
    expect(await rowsOf(base.shard)).toHaveLength(2)
    expect(await frozen.append(first, erasing({}))).toEqual({ kind: 'durable' })
    expect((await rowsOf(base.shard)).map(({ blocks }) => [...blocks])).toEqual([[], [0], []])
  })

  it('determines the outcome of an append whose answer is cut off at any byte', async () => {
    const base = await begin()
    const log = register(throughProxy())
    let before: StoredSegment = base
    const append = async (name: string): Promise<AppendOutcome> => {
      const next = segment(base.shard, before.number + 1, name)
      const outcome = await log.append(before, next)
      before = next
      return outcome
    }
    await append('to connect')
    const from = proxy.answered
    await append('to measure')
    const bytes = proxy.answered - from
    expect(bytes).toBeGreaterThan(10)
    for (let byte = 0; byte < bytes; byte++) {
      const cut = proxy.cutAfter(byte)
      expect(await append(`cut at ${byte}`)).toEqual({ kind: 'durable' })
      await cut
    }
    const rows = await rowsOf(base.shard)
    expect(rows.map(({ segment: number }) => number)).toEqual(
      Array.from({ length: bytes + 3 }, (_none, at) => at),
    )
  })

  it('does not treat an unreplicated commit as durable, however its wait is ended', async () => {
    const base = await begin()
    const log = register()
    await log.append(base, segment(base.shard, 1, 'to connect'))
    for (const [round, end] of ['pg_cancel_backend', 'pg_terminate_backend'].entries()) {
      standby.pause()
      let outcome: AppendOutcome | undefined
      const before = segment(base.shard, round + 1, round === 0 ? 'to connect' : 'alone 1')
      const appended = log
        .append(before, segment(base.shard, round + 2, `alone ${round + 1}`))
        .then((found) => (outcome = found))
      const waiting = "wait_event = 'SyncRep'"
      const endWaiting = `SELECT ${end}(pid) AS done FROM pg_stat_activity WHERE ${waiting}`
      // The row is visible to all, and each confirmation waits as well.
      for (let ended = 0; ended < 3;) ended += (await primary.query(endWaiting)).length
      const seen = await primary.query('SELECT 1 FROM test_segments WHERE shard = $1 AND segment = $2', [
        base.shard,
        round + 2,
      ])
      expect(seen).toHaveLength(1)
      expect(outcome).toBeUndefined()
      standby.resume()
      expect(await appended).toEqual({ kind: 'durable' })
    }
  })

  it('reports "unknown" when the database stops answering, and the outcome when it is back', async () => {
    const base = await begin()
    const [limit, urls] = [{ nowMs: 0 }, hostUrls(throughProxy())]
    const log = new SegmentRegister({ urls, statements, nowMs: () => limit.nowMs, chance: () => 0 })
    registers.push(log)
    const first = segment(base.shard, 1, 'first')
    const second = segment(base.shard, 2, 'second')
    expect(await log.append(base, first)).toEqual({ kind: 'durable' })
    const cut = proxy.cutAfter(0)
    const appended = log.append(first, second)
    // The time is over when the connection breaks.
    limit.nowMs = 60_000
    await cut
    expect(await appended).toMatchObject({ kind: 'unknown' })
    await eventually(async () => (await rowsOf(base.shard)).length === 3)
    expect(await log.append(first, second)).toEqual({ kind: 'durable' })
  })

  it('appends on another connection if packets of the first one are lost', async () => {
    const base = await begin()
    const log = register(throughProxy())
    const first = segment(base.shard, 1, 'first')
    expect(await log.append(base, first)).toEqual({ kind: 'durable' })
    proxy.forget(0)
    const second = segment(base.shard, 2, 'second')
    expect(await log.append(first, second)).toEqual({ kind: 'durable' })
    expect(await log.append(second, segment(base.shard, 3, 'third'))).toEqual({ kind: 'durable' })
    expect(await rowsOf(base.shard)).toHaveLength(4)
  })

  it('waits for a slow standby with both connections, and writes the segment once', async () => {
    const base = await begin()
    const log = register()
    const first = segment(base.shard, 1, 'first')
    await log.append(base, first)
    standby.pause()
    const appended = log.append(first, segment(base.shard, 2, 'second'))
    const waiting = (event: string) =>
      primary.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event = $1 AND query LIKE 'INSERT INTO test_segments%'",
        [event],
      )
    await eventually(async () => (await waiting('transactionid')).length === 1)
    expect(await waiting('SyncRep')).toHaveLength(1)
    standby.resume()
    expect(await appended).toEqual({ kind: 'durable' })
    expect(await rowsOf(base.shard)).toHaveLength(3)
    expect(await log.append(segment(base.shard, 2, 'second'), segment(base.shard, 3, 'third'))).toEqual({
      kind: 'durable',
    })
  })

  it('confirms an append although each commit takes longer than a second try can wait', async () => {
    const base = await begin()
    await standby.query(`ALTER SYSTEM SET recovery_min_apply_delay = '6s'`)
    standby.reload()
    await primary.query('CREATE ROLE patient LOGIN SUPERUSER')
    await primary.query('ALTER ROLE patient SET synchronous_commit = remote_apply')
    const log = register(primary.url.replace('strandfast@', 'patient@'))
    expect(await log.append(base, segment(base.shard, 1, 'first'))).toEqual({ kind: 'durable' })
    await standby.query('ALTER SYSTEM RESET recovery_min_apply_delay')
    standby.reload()
  })

  it('writes to the server that accepts writes, wherever it is in the list', async () => {
    const base = await begin()
    const [primaryHost, standbyHost] = [primary.url, standby.url].map((url) => new URL(url).host)
    const log = register(`postgres://strandfast@127.0.0.1:1,${standbyHost},${primaryHost}/postgres`)
    expect(await log.append(base, segment(base.shard, 1, 'first'))).toEqual({ kind: 'durable' })
    const none = register(`postgres://strandfast@${standbyHost}/postgres`)
    await expect(none.read(base.shard, { segment: 0, part: 0 }, { rows: 1 })).rejects.toThrow('is read-only')
  })

  it('leaves no connection behind that waits for an abandoned append', async () => {
    const base = await begin()
    const [clock, urls] = [{ nowMs: 0 }, hostUrls(primary.url)]
    const logs = Array.from(
      { length: 4 },
      () => new SegmentRegister({ urls, statements, nowMs: () => clock.nowMs, chance: () => 0 }),
    )
    registers.push(...logs)
    const first = segment(base.shard, 1, 'first')
    await Promise.all(logs.map((log) => log.read(base.shard, { segment: 0, part: 0 }, { rows: 1 })))
    standby.pause()
    const running = logs.map((log) => log.append(base, first))
    const waitingFor = async (kind: string) =>
      (
        await primary.query(
          "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = $1 AND query LIKE 'INSERT INTO test_segments%'",
          [kind],
        )
      ).length
    // One connection waits for the standby, the others wait for that one, and so do second attempts.
    await eventually(async () => (await waitingFor('Lock')) >= 3)
    clock.nowMs = 60_000
    for (const log of logs) log.drop()
    expect(new Set((await Promise.all(running)).map(({ kind }) => kind))).toEqual(new Set(['unknown']))
    await eventually(async () => (await waitingFor('Lock')) === 0)
    expect(await waitingFor('IPC')).toBe(1)
    standby.resume()
    await eventually(async () => (await rowsOf(base.shard)).length === 2)
  })

  it('waits for the standby, whatever the settings of the role are', async () => {
    await primary.query('CREATE ROLE hasty LOGIN SUPERUSER')
    await primary.query('ALTER ROLE hasty SET synchronous_commit = off')
    await primary.query('ALTER ROLE hasty SET client_min_messages = error')
    const base = await begin()
    const log = register(primary.url.replace('strandfast@', 'hasty@'))
    expect(await log.append(base, segment(base.shard, 1, 'first'))).toEqual({ kind: 'durable' })
    standby.pause()
    let isAnswered = false
    const appended = log
      .append(segment(base.shard, 1, 'first'), segment(base.shard, 2, 'second'))
      .then((found) => {
        isAnswered = true
        return found
      })
    const waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    for (let ended = 0; ended < 2;) ended += (await primary.query(waiting)).length
    expect(isAnswered).toBe(false)
    standby.resume()
    expect(await appended).toEqual({ kind: 'durable' })
  })
})

function segment(shard: number, number: number, header: string): StoredSegment {
  const hash = createHash('sha256').update(`${shard} ${number} ${header}`).digest()
  return { shard, number, hash, header, parts: [{ blocks: Buffer.alloc(0), state: null }] }
}
