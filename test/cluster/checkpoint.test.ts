import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { pooledRandom } from '../../src/base/random.js'
import { SegmentRegister } from '../../src/cluster/database/register.js'
import { statementsOf } from '../../src/cluster/database/statements.js'
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
    const lines = { cluster, writer: { node: 'a', incarnation: 1 }, log: lineOf(), checkpoints: lineOf() }
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
  const removals = async () =>
    (await postgres.query('SELECT part FROM test_checkpoints WHERE part < 0')).length
  const checkpoint = async (path: string) => {
    const client = new LogClient(lineOf())
    const last = lastCheckpoint({ client, secret })
    const writer = new CheckpointWriter({
      path,
      client: new LogClient(lineOf()),
      secret,
      last,
      clock: Date.now,
      onFailure: (error) => failures.push(error),
      bytesMin: 0,
    })
    writer.segmentWritten(1_000_000_000, true)
    const failed = failures.length
    let isBegun = false
    const isDone = async () => {
      const { head } = lastCheckpoint({ client, secret })
      if (!isBegun || head === undefined || head.segment === last.head?.segment) return false
      // The head is there before sealed rows are removed, and closing the writer would interrupt that.
      return failures.length > failed || (await removals()) === 0
    }
    for (;;) {
      await eventually(async () => writer.ready || (await isDone()))
      if (await isDone()) break
      isBegun = true
      writer.step()
    }
    client.close()
    writer.close()
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

  it('complete a removal of sealed rows that was interrupted', async () => {
    await begin()
    const { shard } = await node()
    work(shard, 0)
    shard.store.flush()
    await postgres.query(`CREATE FUNCTION interrupt() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN RAISE EXCEPTION 'interrupted'; END $$`)
    await postgres.query('CREATE TRIGGER removal BEFORE UPDATE ON test_segments EXECUTE FUNCTION interrupt()')
    await checkpoint(shard.path)
    expect(failures.splice(0).map(({ message }) => message)).toEqual([expect.stringContaining('interrupted')])
    expect(await states()).toBeGreaterThan(10)
    await postgres.query('DROP TRIGGER removal ON test_segments')
    work(shard, 20)
    shard.store.flush()
    await checkpoint(shard.path)
    expect(await states()).toBe(0)
    const { path } = await rebuilt()
    expect(await rowsOf(path)).toEqual(await rowsOf(shard.path))
    expect(failures).toEqual([])
  })

  it('are not written again once complete, although the removal of sealed rows failed', async () => {
    await begin()
    const { shard } = await node()
    work(shard, 0)
    shard.store.flush()
    const raise = (text: string) => `LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '${text}'; END $$`
    await postgres.query(`CREATE OR REPLACE FUNCTION stop_removal() RETURNS trigger ${raise('interrupted')}`)
    await postgres.query(
      `CREATE OR REPLACE FUNCTION keep() RETURNS trigger ${raise('a checkpoint is removed')}`,
    )
    await postgres.query(
      'CREATE TRIGGER removal BEFORE UPDATE ON test_segments EXECUTE FUNCTION stop_removal()',
    )
    await postgres.query(
      'CREATE TRIGGER head BEFORE DELETE ON test_checkpoints FOR EACH ROW WHEN (OLD.part = 0) EXECUTE FUNCTION keep()',
    )
    let nowMs = Date.now()
    const messages: string[] = []
    const writer = new CheckpointWriter({
      path: shard.path,
      client: new LogClient(lineOf()),
      secret,
      last: { head: undefined, stateBytes: 1 },
      clock: () => nowMs,
      onFailure: ({ message }) => messages.push(message),
      bytesMin: 0,
    })
    const stepUntil = (isOver: () => boolean) =>
      eventually(() => {
        if (writer.ready) writer.step()
        return isOver()
      })
    await stepUntil(() => messages.length > 0)
    nowMs += limits.clusterCheckpointMs
    let steps = 0
    await stepUntil(() => (steps += 1) > 20)
    writer.close()
    expect(messages).toEqual([expect.stringContaining('interrupted')])
  })

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

  it('rebuild a store that follows the log and was overtaken by one', async () => {
    await begin()
    const { shard } = await node()
    work(shard, 0)
    const store = { path: newPath(), client: new LogClient(lineOf()), secret }
    const followed = await FollowedStore.open(store)
    work(shard, 20)
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
