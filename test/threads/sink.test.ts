import { DatabaseError } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { createLogger } from '../../src/base/log.js'
import type { SinkBatch, SinkConnection, SinkCursor } from '../../src/outbound/postgres.js'
import { SinkLog } from '../../workers/sink/log.js'
import { SinkRun } from '../../workers/sink/run.js'
import { appendNumber, TestShard } from '../support/shard/shard.js'

let shard: TestShard
let log: SinkLog

beforeEach(() => {
  shard = new TestShard()
  log = new SinkLog(0, () => shard.environment)
})

afterEach(() => shard.remove())

/** Ingests `count` numbers from `from` on in one commit. */
function ingest(from: number, count: number): void {
  const lines = Array.from({ length: count }, (_none, index) => JSON.stringify({ n: from + index }))
  shard.ask({
    kind: 'ingestChunk',
    agent: 'feed',
    chunk: Buffer.from(lines.join('\n')),
    firstLine: 1,
    mode: 'skip',
    options: {},
  })
}

const numbersOf = (rows: SinkBatch['rows']) =>
  rows.map(({ body }) => JSON.parse(Buffer.from(body ?? []).toString()).n)

/** A model of PostgreSQL: rows by hash and a cursor, which change together. */
class Database implements SinkConnection {
  open = true
  readonly numbers = new Map<string, number>()
  cursor: SinkCursor | undefined
  /** The fates of the next batches: stored, failed, or stored with the answer lost. */
  readonly fates: ('stored' | 'failed' | 'timed out' | 'answer lost')[] = []
  batches = 0
  /** The failures that each batch was delivered with. */
  readonly failures: number[] = []

  cursors(): Promise<Map<number, SinkCursor>> {
    return Promise.resolve(new Map(this.cursor === undefined ? [] : [[0, this.cursor]]))
  }

  deliver({ rows, cursor, failures }: SinkBatch): Promise<{ stored: number; refused: number }> {
    this.batches++
    const fate = this.fates.shift() ?? 'stored'
    this.failures.push(failures)
    if (fate === 'failed') return Promise.reject(new Error('Not there'))
    if (fate === 'timed out')
      return Promise.reject(Object.assign(new DatabaseError('Too slow', 0, 'error'), { code: '57014' }))
    const before = this.numbers.size
    numbersOf(rows).forEach((n, index) => this.numbers.set(rows[index]?.contentHash ?? '', n))
    this.cursor = cursor
    if (fate === 'answer lost') return Promise.reject(new Error('Connection terminated unexpectedly'))
    return Promise.resolve({ stored: this.numbers.size - before, refused: 0 })
  }

  close(): void {}
}

/** Runs a sink until it has slept `naps` times. @returns the sink and the durations of its sleeps */
async function runUntilAsleep(
  database: SinkConnection,
  naps: number,
  logs = [log],
): Promise<{ run: SinkRun; slept: number[] }> {
  const slept: number[] = []
  const run: SinkRun = new SinkRun({
    logs,
    connect: () => Promise.resolve(database),
    clock: () => shard.nowMs,
    chance: () => 1,
    sleep(ms) {
      slept.push(ms)
      if (slept.length === naps) run.stop()
      return Promise.resolve()
    },
    log: createLogger('silent', 'sink'),
  })
  await run.run()
  return { run, slept }
}

describe('the log that the sink reads', () => {
  it('has only the records that arrived over ingest, in commit order', () => {
    ingest(0, 3)
    shard.run(appendNumber('feed', 100), appendNumber('other', 101))
    shard.ask({ kind: 'ingestOne', agent: 'single', body: Buffer.from('{"n":3}'), options: {} })
    const batch = log.nextBatch()
    expect(numbersOf(batch?.rows ?? [])).toEqual([0, 1, 2, 3])
    expect(batch?.rows.map(({ agent, seq }) => `${agent} ${seq}`)).toEqual([
      'feed 1',
      'feed 2',
      'feed 3',
      'single 1',
    ])
  })

  it('returns an erased record without its body, and reports the erasure', () => {
    shard.ask({ kind: 'agentCreate', agent: 'feed', zone: 'free', options: {} })
    ingest(0, 3)
    const [, second] = log.nextBatch()?.rows ?? []
    const hash = second?.contentHash ?? ''
    const erased = shard.ask({
      kind: 'recordMutate',
      agent: 'feed',
      hash,
      action: 'erase',
      principal: 'test',
      options: {},
    })
    expect(erased.kind).toBe('reply')
    const batch = log.nextBatch()
    expect(batch?.erased).toEqual([hash])
    expect(batch?.rows.map(({ body }) => body?.toString())).toEqual(['{"n":0}', undefined, '{"n":2}'])
  })

  it('returns the same rows until they are confirmed', () => {
    ingest(0, 10)
    const first = log.nextBatch()
    expect(log.nextBatch()).toEqual(first)
    if (first !== undefined) log.confirm(first)
    expect(log.nextBatch()).toBeUndefined()
  })

  it('returns all rows in batches of bounded size', () => {
    for (let part = 0; part < 5; part++) ingest(part * 2_000, 2_000)
    const found: number[] = []
    for (let batch = log.nextBatch(); batch !== undefined; batch = log.nextBatch()) {
      expect(batch.rows.length).toBeLessThan(limits.sinkBatchRows + 1_024)
      found.push(...numbersOf(batch.rows))
      log.confirm(batch)
    }
    expect(found).toEqual(Array.from({ length: 10_000 }, (_none, n) => n))
  })

  it('counts the undelivered records', () => {
    ingest(0, 700)
    shard.ask(appendNumber('feed', 1))
    expect(log.countNew()).toBe(false)
    expect(log.lagRecords).toBe(700)
    expect(log.ageMs(shard.nowMs + 5_000)).toBe(5_000)
    const batch = log.nextBatch()
    ingest(700, 50)
    log.countNew()
    if (batch !== undefined) log.confirm(batch)
    expect(log.lagRecords).toBe(50)
    const rest = log.nextBatch()
    if (rest !== undefined) log.confirm(rest)
    expect(log.lagRecords).toBe(0)
    expect(log.ageMs(shard.nowMs + 5_000)).toBe(0)
  })

  it('occasionally stores its cursor in PostgreSQL even if there is nothing to deliver', () => {
    ingest(0, 1)
    const first = log.nextBatch()
    if (first !== undefined) log.confirm(first)
    for (let n = 0; n < limits.sinkScanBlocks - 1; n++) shard.ask(appendNumber('other', n))
    expect(log.nextBatch()).toBeUndefined()
    shard.ask(appendNumber('other', -1))
    expect(log.nextBatch()).toMatchObject({ rows: [] })
  })

  it('does not open the store while its shard is restarting', async () => {
    ingest(0, 5)
    let opened = 0
    const other = new SinkLog(0, () => {
      opened++
      return {
        ...shard.environment,
        root: Object.create(shard.environment.root, { close: { value: () => {} } }),
      }
    })
    await other.pause()
    expect([other.countNew(), other.nextBatch(), other.ageMs(shard.nowMs)]).toEqual([false, undefined, 0])
    expect([other.needsCursor, other.seek(undefined)]).toEqual([false, true])
    expect(opened).toBe(0)
    other.resume()
    expect(numbersOf(other.nextBatch()?.rows ?? [])).toEqual([0, 1, 2, 3, 4])
    await other.pause()
    other.resume()
    other.countNew()
    expect(opened).toBe(2)
  })

  it('recognizes a cursor by its hash, and starts from the beginning for an unknown cursor', () => {
    ingest(0, 5)
    const batch = log.nextBatch()
    const cursor = batch?.cursor ?? { blockNo: -1, contentHash: '' }
    const other = new SinkLog(0, () => shard.environment)
    expect(other.seek(cursor)).toBe(true)
    expect(other.nextBatch()).toBeUndefined()
    expect(other.seek({ ...cursor, contentHash: '00'.repeat(32) })).toBe(false)
    expect(numbersOf(other.nextBatch()?.rows ?? [])).toEqual([0, 1, 2, 3, 4])
    expect(other.seek({ blockNo: 1_000, contentHash: cursor.contentHash })).toBe(false)
  })
})

describe('the run of the sink', () => {
  it('delivers everything, and sleeps if there is nothing more', async () => {
    ingest(0, 5_000)
    const database = new Database()
    const { run, slept } = await runUntilAsleep(database, 1)
    expect([...database.numbers.values()]).toEqual(Array.from({ length: 5_000 }, (_none, n) => n))
    expect(slept).toEqual([limits.sinkPollMs])
    expect(run.figures()).toMatchObject({ rows: 5_000, failures: 0, lagRecords: 0 })
  })

  it('does not store a row twice if the answer to a batch was lost', async () => {
    ingest(0, 1_000)
    const database = new Database()
    database.fates.push('answer lost')
    const { run } = await runUntilAsleep(database, 2)
    expect(database.numbers.size).toBe(1_000)
    // The cursor that it read after the failure showed that the batch was stored.
    expect(database.batches).toBe(1)
    expect(run.figures().failures).toBe(1)
  })

  it('pauses longer after each failure, up to a bound, until a batch succeeds', async () => {
    ingest(0, 10)
    const database = new Database()
    database.fates.push(...Array.from({ length: 10 }, () => 'failed' as const))
    const { slept } = await runUntilAsleep(database, 11)
    const { sinkRetryBaseMs: base, sinkRetryMaxMs: max } = limits
    const pauses = Array.from({ length: 10 }, (_none, failures) => Math.min(base * 2 ** failures, max))
    expect(slept).toEqual([...pauses, limits.sinkPollMs])
    expect(database.numbers.size).toBe(10)
  })

  it('delivers the batches of the other shards while that of one fails', async () => {
    ingest(0, 10)
    const stored: number[] = []
    const failing: SinkConnection = {
      open: true,
      cursors: () => Promise.resolve(new Map()),
      deliver({ shard: no, rows }) {
        if (no === 0) return Promise.reject(new Error('Not there'))
        stored.push(...numbersOf(rows))
        return Promise.resolve({ stored: rows.length, refused: 0 })
      },
      close() {},
    }
    await runUntilAsleep(failing, 2, [log, new SinkLog(1, () => shard.environment)])
    expect(stored).toEqual(Array.from({ length: 10 }, (_none, n) => n))
  })

  it('delivers other shards while one is paused, and that one from the cursor that another node has moved', async () => {
    ingest(0, 10)
    const moved = new SinkLog(0, () => ({
      ...shard.environment,
      root: Object.create(shard.environment.root, { close: { value: () => {} } }),
    }))
    await moved.pause()
    const database = new Database()
    const { run } = await runUntilAsleep(database, 1, [moved, log])
    expect(run.figures()).toMatchObject({ rows: 10, failures: 0, lagRecords: 0 })
    ingest(10, 5)
    moved.resume()
    const again = await runUntilAsleep(database, 1, [moved])
    expect(database.numbers.size).toBe(15)
    expect(again.run.figures().rows).toBe(5)
  })

  it('counts the failures of a batch that fewer rows may help against, until it is stored', async () => {
    ingest(0, 10)
    const database = new Database()
    database.fates.push('timed out', 'failed', 'timed out')
    await runUntilAsleep(database, 4)
    expect(database.failures).toEqual([0, 1, 1, 2])
    ingest(10, 10)
    await runUntilAsleep(database, 1)
    expect(database.failures.at(-1)).toBe(0)
  })

  it('returns to the cursor of PostgreSQL if PostgreSQL lost rows, as after a failover', async () => {
    ingest(0, 100)
    const database = new Database()
    await runUntilAsleep(database, 1)
    const replica = new Database()
    expect(database.numbers.size).toBe(100)
    await runUntilAsleep(replica, 1)
    expect(replica.numbers.size).toBe(100)
  })
})
