import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { pooledRandom } from '../../src/base/random.js'
import { SegmentRegister } from '../../src/cluster/database/register.js'
import { statementsOf } from '../../src/cluster/database/statements.js'
import { ConfirmedClock } from '../../src/protocol/confirmed-clock.js'
import type { Command } from '../../src/protocol/messages.js'
import { CheckpointWriter } from '../../workers/store/replica/checkpoint-writer.js'
import { firstSegment } from '../../workers/store/replica/cluster-segment.js'
import { FollowedStore } from '../../workers/store/replica/followed-store.js'
import { LogClient } from '../../workers/store/replica/log-client.js'
import { type NodeLog, prepareNodeLog } from '../../workers/store/replica/node-log.js'
import { catchUpStore, lastCheckpoint } from '../../workers/store/replica/node-store.js'
import { blocksOf, replicatedRows } from '../../workers/store/row-mover.js'
import { closeSnapshot, openSnapshot } from '../../workers/store/snapshots.js'
import { logSettings, shardLine } from '../support/cluster/shard-line.js'
import { eventually } from '../support/eventually.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'
import { TestShard, appendNumber, replyOf } from '../support/shard/shard.js'

const tables = 'test'
const statements = statementsOf(tables)
/** The cluster of test shards. */
const cluster = '07'.repeat(16)
const secret = { cluster, masterSeed: Buffer.alloc(32, 7), random: pooledRandom() }

describe.skipIf(noPostgres)('checkpoints of a shard', () => {
  let postgres: TestPostgres
  let thread: Worker
  let directory: string
  const open: { shard: TestShard; log: NodeLog }[] = []

  beforeAll(async () => {
    postgres = await makePostgres()
    await postgres.start()
    directory = mkdtempSync(join(tmpdir(), 'strandfast-checkpoint-'))
    const script = new URL('../../dist/workers/cluster-log.js', import.meta.url)
    thread = new Worker(script, { workerData: logSettings([postgres.url], tables) })
  })

  afterAll(async () => {
    await thread?.terminate()
    await postgres?.remove()
    rmSync(directory, { recursive: true, force: true })
  })

  afterEach(async () => {
    for (const { shard, log } of open.splice(0)) {
      log.checkpoints.close()
      await shard.remove()
    }
    for (const statement of statements.drop) await postgres.query(statement)
  })

  const begin = async () => {
    for (const statement of statements.create) await postgres.query(statement)
    const urls = [postgres.url]
    const register = new SegmentRegister({ urls, statements, nowMs: () => 0, chance: () => 0 })
    await register.begin(firstSegment(0, secret))
    await register.close()
  }
  const lineOf = () => shardLine(thread, 0)
  let stores = 0
  const newPath = () => join(directory, `store-${(stores += 1)}`)
  const failures: Error[] = []
  const node = async (path = newPath()) => {
    const writer = { node: 'a', incarnation: 1 }
    const clock = new ConfirmedClock().memory
    const lines = { cluster, writer, clock, log: lineOf(), checkpoints: lineOf() }
    const failed = (error: Error) => void failures.push(error)
    const log = await prepareNodeLog({
      path,
      channels: lines,
      secret,
      clock: Date.now,
      heartbeat() {},
      onFailure: failed,
    })
    const shard = new TestShard(path, { openLog: log.openLog })
    open.push({ shard, log })
    return { shard, log }
  }
  /** All replicated rows and blocks, as text. */
  const rowsOf = async (path: string) => {
    const snapshot = openSnapshot(path)
    const rows = [...replicatedRows(snapshot), ...blocksOf(snapshot)].map(
      ({ table, key, value }) => `${table} ${key.toString('hex')} ${value?.toString('hex') ?? ''}`,
    )
    await closeSnapshot(snapshot)
    return rows
  }
  /** A writer of checkpoints with a clock of the test, and its failures. */
  const writerOf = (path: string) => {
    const client = new LogClient(lineOf())
    const last = lastCheckpoint({ client, secret })
    client.close()
    let nowMs = Date.now()
    const faults: string[] = []
    const writer = new CheckpointWriter({
      path,
      client: new LogClient(lineOf()),
      secret,
      last,
      clock: () => nowMs,
      onFailure: ({ message }) => faults.push(message),
      bytesMin: 0,
    })
    const stepUntil = (isOver: () => boolean | Promise<boolean>) =>
      eventually(() => {
        if (writer.ready) writer.step()
        return isOver()
      })
    return { writer, faults, stepUntil, pass: (ms: number) => void (nowMs += ms) }
  }
  const heads = () => postgres.query('SELECT segment, state FROM test_checkpoints WHERE part = 0 ORDER BY 1')
  const isRemoved = async () =>
    (await postgres.query('SELECT part FROM test_checkpoints WHERE part < 0')).length === 0
  /** Writes a checkpoint, and removes the rows that it contains from the segments unless they are kept. */
  const checkpoint = async (path: string, { keeps = false } = {}) => {
    const { writer, faults, stepUntil, pass } = writerOf(path)
    pass(limits.clusterRemovalDelayMs)
    writer.segmentWritten(1_000_000_000, true)
    const before = JSON.stringify(await heads())
    await stepUntil(async () => JSON.stringify(await heads()) !== before)
    if (!keeps) {
      // The answer arrives after the head can be seen.
      await stepUntil(() => {
        pass(limits.clusterRemovalDelayMs)
        return isRemoved()
      })
    }
    writer.close()
    expect(faults).toEqual([])
  }
  const states = async () => {
    const rows = await postgres.query<{ state: Buffer | null }>('SELECT state FROM test_segments')
    return rows.filter(({ state }) => state !== null).length
  }
  /** A store that is built from the log alone. */
  const rebuilt = async () => {
    const path = newPath()
    const client = new LogClient(lineOf())
    const { kind } = await catchUpStore({ path, client, secret })
    client.close()
    return { path, kind }
  }
  const work = (shard: TestShard, from: number) => {
    for (let n = from; n < from + 20; n++) {
      shard.run(appendNumber('agent', n), appendNumber(`other-${n % 7}`, n))
      shard.ask(keyed(n))
    }
  }

  it.each(['the same writer', 'the next owner'])(
    'remove sealed rows although that failed at first: %s repeats it, and the checkpoint stays as it is',
    async (which) => {
      await begin()
      const { shard } = await node()
      work(shard, 0)
      shard.store.flush()
      await postgres.query(`CREATE OR REPLACE FUNCTION interrupt() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'interrupted'; END $$`)
      await postgres.query(
        'CREATE TRIGGER removal BEFORE UPDATE ON test_segments EXECUTE FUNCTION interrupt()',
      )
      await checkpoint(shard.path, { keeps: true })
      const head = await heads()
      const first = writerOf(shard.path)
      first.pass(limits.clusterRemovalDelayMs)
      await first.stepUntil(() => first.faults.length > 0)
      expect(first.faults).toEqual([expect.stringContaining('interrupted')])
      expect(await states()).toBeGreaterThan(10)
      await postgres.query('DROP TRIGGER removal ON test_segments')
      const next = which === 'the same writer' ? first : writerOf(shard.path)
      next.pass(limits.clusterCheckpointRetryMs)
      await next.stepUntil(isRemoved)
      expect(await states()).toBe(0)
      expect(await heads()).toEqual(head)
      for (const { writer } of new Set([first, next])) writer.close()
      const { path } = await rebuilt()
      expect(await rowsOf(path)).toEqual(await rowsOf(shard.path))
      expect(failures).toEqual([])
    },
  )

  it('replace sealed rows, and a store built from them is identical', async () => {
    await begin()
    const { shard } = await node()
    replyOf(shard.ask({ kind: 'agentCreate', agent: 'free', zone: 'free', options: {} }))
    const [written] = shard.run(append('a body to erase'), append('what stays'))
    work(shard, 0)
    replyOf(shard.ask(erasing(replyOf(written).content_hash)))
    shard.store.flush()
    expect(await states()).toBeGreaterThan(10)
    await checkpoint(shard.path)
    expect(await states()).toBe(0)
    work(shard, 20)
    shard.store.flush()
    const { path, kind } = await rebuilt()
    expect(kind).toBe('built')
    expect(await rowsOf(path)).toEqual(await rowsOf(shard.path))
    // A later checkpoint replaces the first.
    await checkpoint(shard.path)
    expect(await postgres.query('SELECT DISTINCT segment FROM test_checkpoints')).toHaveLength(1)
    const again = await rebuilt()
    expect(await rowsOf(again.path)).toEqual(await rowsOf(shard.path))
    expect(failures).toEqual([])
  })

  it('leave followers time to read sealed rows, and rebuild the store of one that did not', async () => {
    await begin()
    const { shard } = await node()
    work(shard, 0)
    const store = { path: newPath(), client: new LogClient(lineOf()), secret }
    const followed = await FollowedStore.open(store)
    work(shard, 20)
    shard.store.flush()
    await checkpoint(shard.path, { keeps: true })
    expect(followed.catchUp()).toBe(true)
    work(shard, 40)
    shard.store.flush()
    await checkpoint(shard.path)
    expect(followed.catchUp()).toBe(false)
    await followed.close()
    const again = await FollowedStore.open(store)
    expect(again.result.kind).toBe('built')
    expect(again.catchUp()).toBe(true)
    await again.close()
    store.client.close()
    expect(await rowsOf(store.path)).toEqual(await rowsOf(shard.path))
  })

  it.each(['a missing store', 'a store that is behind'])(
    'written while the log is read for %s, are used instead',
    async (which) => {
      await begin()
      const { shard } = await node()
      work(shard, 0)
      shard.store.flush()
      if (which === 'a missing store') await checkpoint(shard.path)
      const path = which === 'a missing store' ? newPath() : (await rebuilt()).path
      work(shard, 20)
      shard.store.flush()
      const client = new LogClient(lineOf())
      const before = client.request({ kind: 'lastCheckpoint' }, 'lastCheckpoint')
      await checkpoint(shard.path)
      // The first question is answered as of before the checkpoint.
      const answers = [before]
      const request = client.request.bind(client)
      Object.assign(client, {
        request: (...[message, kind]: Parameters<LogClient['request']>) =>
          message.kind === 'lastCheckpoint'
            ? (answers.shift() ?? request(message, kind))
            : request(message, kind),
      })
      expect((await catchUpStore({ path, client, secret })).kind).toBe('built')
      expect(answers).toEqual([])
      client.close()
      expect(await rowsOf(path)).toEqual(await rowsOf(shard.path))
    },
  )

  it('rebuild a store that is behind them, and set aside a store of another history', async () => {
    await begin()
    const { shard, log } = await node()
    work(shard, 0)
    shard.store.flush()
    const { path: behind } = await rebuilt()
    work(shard, 20)
    shard.store.flush()
    await checkpoint(shard.path)
    const client = new LogClient(lineOf())
    expect((await catchUpStore({ path: behind, client, secret })).kind).toBe('built')
    expect(await rowsOf(behind)).toEqual(await rowsOf(shard.path))
    expect((await catchUpStore({ path: behind, client, secret })).kind).toBe('caughtUp')
    // Like a promoted standby without the last segments, which it may not have acknowledged.
    log.checkpoints.close()
    open.splice(0)
    await shard.close()
    await postgres.query('DELETE FROM test_segments WHERE segment > 5')
    await postgres.query('DELETE FROM test_checkpoints')
    const found = await catchUpStore({ path: behind, client, secret }).catch((error: Error) => error.message)
    expect(found).toContain('has its rows in a checkpoint')
    await postgres.query('DELETE FROM test_segments WHERE segment > 0')
    expect(await catchUpStore({ path: behind, client, secret })).toMatchObject({ kind: 'built' })
    client.close()
    await shard.remove()
  })
})

function append(text: string): Command {
  const body = Buffer.from(JSON.stringify({ data: { text } }))
  return { kind: 'recordAppend', agent: 'free', emerge: false, body, options: {} }
}

function erasing(hash: string): Command {
  return { kind: 'recordMutate', agent: 'free', action: 'erase', hash, principal: 'root', options: {} }
}

/** A write with an idempotency key. */
function keyed(n: number): Command {
  const body = Buffer.from(JSON.stringify({ data: { n } }))
  const idempotency = { key: `key-${n}`, caller: 'root' }
  return { kind: 'recordAppend', agent: 'keyed', emerge: true, body, options: { idempotency } }
}
