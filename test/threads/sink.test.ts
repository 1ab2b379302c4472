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

/** Ingests so many numbers from `from` in one commit. */
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

/** PostgreSQL as the sink sees it: rows by their hash and a cursor, changed together. */
class Database implements SinkConnection {
  open = true
  readonly numbers = new Map<string, number>()
  cursor: SinkCursor | undefined
  /** What happens to the next batches: it is stored, it is not, or it is and the answer is lost. */
  readonly fates: ('stored' | 'failed' | 'answer lost')[] = []
  batches = 0

  cursors(): Promise<Map<number, SinkCursor>> {
    return Promise.resolve(new Map(this.cursor === undefined ? [] : [[0, this.cursor]]))
  }

  deliver({ rows, cursor }: SinkBatch): Promise<{ stored: number; refused: number }> {
    this.batches++
    const fate = this.fates.shift() ?? 'stored'
    if (fate === 'failed') return Promise.reject(new Error('Not there'))
    const before = this.numbers.size
    numbersOf(rows).forEach((n, index) => this.numbers.set(rows[index]?.contentHash ?? '', n))
    this.cursor = cursor
    if (fate === 'answer lost') return Promise.reject(new Error('Connection terminated unexpectedly'))
    return Promise.resolve({ stored: this.numbers.size - before, refused: 0 })
  }

  close(): void {}
}

/** Runs a sink until it has slept so many times; gives it and how long it meant to sleep each time. */
async function runUntilAsleep(database: Database, naps: number): Promise<{ run: SinkRun; slept: number[] }> {
  const slept: number[] = []
  const run: SinkRun = new SinkRun({
    logs: [log],
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
  it('has the records that came by ingest, in commit order, and no others', () => {
    ingest(0, 3)
    shard.run(appendNumber('feed', 100), appendNumber('other', 101))
    shard.ask({ kind: 'ingestOne', agent: 'single', body: Buffer.from('{"n":3}'), options: {} })
    const taken = log.take()
    expect(numbersOf(taken?.rows ?? [])).toEqual([0, 1, 2, 3])
    expect(taken?.rows.map(({ agent, seq }) => `${agent} ${seq}`)).toEqual([
      'feed 1',
      'feed 2',
      'feed 3',
      'single 1',
    ])
  })

  it('gives no body of a record that was erased, and tells of the erasure', () => {
    shard.ask({ kind: 'agentCreate', agent: 'feed', zone: 'free', options: {} })
    ingest(0, 3)
    const [, second] = log.take()?.rows ?? []
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
    const taken = log.take()
    expect(taken?.erased).toEqual([hash])
    expect(taken?.rows.map(({ body }) => body?.toString())).toEqual(['{"n":0}', undefined, '{"n":2}'])
  })

  it('gives the same rows again until they are done', () => {
    ingest(0, 10)
    const first = log.take()
    expect(log.take()).toEqual(first)
    if (first !== undefined) log.done(first)
    expect(log.take()).toBeUndefined()
  })

  it('gives a bounded number of rows at once, and all of them in the end', () => {
    for (let part = 0; part < 5; part++) ingest(part * 2_000, 2_000)
    const found: number[] = []
    for (let taken = log.take(); taken !== undefined; taken = log.take()) {
      expect(taken.rows.length).toBeLessThan(limits.sinkBatchRows + 1_024)
      found.push(...numbersOf(taken.rows))
      log.done(taken)
    }
    expect(found).toEqual(Array.from({ length: 10_000 }, (_none, n) => n))
  })

  it('counts what is not delivered', () => {
    ingest(0, 700)
    shard.ask(appendNumber('feed', 1))
    expect(log.look()).toBe(false)
    expect(log.lagRecords).toBe(700)
    expect(log.ageMs(shard.nowMs + 5_000)).toBe(5_000)
    const taken = log.take()
    ingest(700, 50)
    log.look()
    if (taken !== undefined) log.done(taken)
    expect(log.lagRecords).toBe(50)
    const rest = log.take()
    if (rest !== undefined) log.done(rest)
    expect(log.lagRecords).toBe(0)
    expect(log.ageMs(shard.nowMs + 5_000)).toBe(0)
  })

  it('tells PostgreSQL of its place now and then where there is nothing to deliver', () => {
    ingest(0, 1)
    const first = log.take()
    if (first !== undefined) log.done(first)
    for (let n = 0; n < limits.sinkScanBlocks - 1; n++) shard.ask(appendNumber('other', n))
    expect(log.take()).toBeUndefined()
    shard.ask(appendNumber('other', -1))
    expect(log.take()).toMatchObject({ rows: [] })
  })

  it('keeps away from the store while its shard is being started again', async () => {
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
    expect([other.look(), other.take(), other.ageMs(shard.nowMs)]).toEqual([false, undefined, 0])
    expect(() => other.goTo(undefined)).toThrow('does not serve')
    expect(opened).toBe(0)
    other.resume()
    expect(numbersOf(other.take()?.rows ?? [])).toEqual([0, 1, 2, 3, 4])
    await other.pause()
    other.resume()
    other.look()
    expect(opened).toBe(2)
  })

  it('knows a place again by its hash, and starts anew at one that it does not have', () => {
    ingest(0, 5)
    const taken = log.take()
    const cursor = taken?.cursor ?? { blockNo: -1, contentHash: '' }
    const other = new SinkLog(0, () => shard.environment)
    expect(other.goTo(cursor)).toBe(true)
    expect(other.take()).toBeUndefined()
    expect(other.goTo({ ...cursor, contentHash: '00'.repeat(32) })).toBe(false)
    expect(numbersOf(other.take()?.rows ?? [])).toEqual([0, 1, 2, 3, 4])
    expect(other.goTo({ blockNo: 1_000, contentHash: cursor.contentHash })).toBe(false)
  })
})

describe('the run of the sink', () => {
  it('delivers everything, and sleeps when there is no more', async () => {
    ingest(0, 5_000)
    const database = new Database()
    const { run, slept } = await runUntilAsleep(database, 1)
    expect([...database.numbers.values()]).toEqual(Array.from({ length: 5_000 }, (_none, n) => n))
    expect(slept).toEqual([limits.sinkPollMs])
    expect(run.figures()).toMatchObject({ rows: 5_000, failures: 0, lagRecords: 0 })
  })

  it('delivers a batch again whose answer was lost, without storing a row twice', async () => {
    ingest(0, 1_000)
    const database = new Database()
    database.fates.push('answer lost')
    const { run } = await runUntilAsleep(database, 2)
    expect(database.numbers.size).toBe(1_000)
    // The cursor that it asked for after the break told that the batch was there.
    expect(database.batches).toBe(1)
    expect(run.figures().failures).toBe(1)
  })

  it('pauses longer after each failure, up to a bound, and not any more once it went well', async () => {
    ingest(0, 10)
    const database = new Database()
    database.fates.push(...Array.from({ length: 10 }, () => 'failed' as const))
    const { slept } = await runUntilAsleep(database, 11)
    const { sinkRetryBaseMs: base, sinkRetryMaxMs: max } = limits
    const pauses = Array.from({ length: 10 }, (_none, failures) => Math.min(base * 2 ** failures, max))
    expect(slept).toEqual([...pauses, limits.sinkPollMs])
    expect(database.numbers.size).toBe(10)
  })

  it('goes back to where PostgreSQL is when it came back with less, as after a failover', async () => {
    ingest(0, 100)
    const database = new Database()
    await runUntilAsleep(database, 1)
    const replica = new Database()
    expect(database.numbers.size).toBe(100)
    await runUntilAsleep(replica, 1)
    expect(replica.numbers.size).toBe(100)
  })
})
