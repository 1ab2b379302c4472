import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { lostLogMessage } from '../../src/protocol/fenced.js'
import { machineClock } from '../../src/base/clock.js'
import { pooledRandom } from '../../src/base/random.js'
import { readKnownEnd } from '../../src/cluster/database/known-end.js'
import { SegmentRegister } from '../../src/cluster/database/register.js'
import { statementsOf } from '../../src/cluster/database/statements.js'
import { ClusterLog } from '../../workers/store/replica/cluster-log.js'
import { firstSegment } from '../../workers/store/replica/cluster-segment.js'
import { FollowedStore } from '../../workers/store/replica/followed-store.js'
import { LogClient } from '../../workers/store/replica/log-client.js'
import { catchUpStore } from '../../workers/store/replica/node-store.js'
import { logSettings, shardLine } from '../support/cluster/shard-line.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'
import { appendNumber, TestShard } from '../support/shard/shard.js'

const tables = 'test'
const statements = statementsOf(tables)
/** The cluster of test shards. */
const secret = { cluster: '07'.repeat(16), masterSeed: Buffer.alloc(32, 7), random: pooledRandom() }

describe.skipIf(noPostgres)('the known durable end of a log in PostgreSQL', () => {
  let postgres: TestPostgres
  let thread: Worker
  let folder: string
  const open: { close(): Promise<void> }[] = []

  beforeAll(async () => {
    postgres = await makePostgres()
    await postgres.start()
    const script = new URL('../../dist/workers/cluster-log.js', import.meta.url)
    thread = new Worker(script, { workerData: logSettings([postgres.url], tables) })
  })

  afterAll(async () => {
    await thread?.terminate()
    await postgres?.remove()
  })

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'strandfast-known-'))
    for (const statement of statements.create) await postgres.query(statement)
    const register = new SegmentRegister({
      urls: [postgres.url],
      statements,
      nowMs: () => 0,
      chance: () => 0,
    })
    await register.begin(firstSegment(0, secret))
    await register.close()
  })

  afterEach(async () => {
    for (const one of open.splice(0)) await one.close()
    rmSync(folder, { recursive: true })
    for (const statement of statements.drop) await postgres.query(statement)
  })

  const pathOf = (name: string) => join(folder, name)
  const knownOf = (name: string) => pathOf(`${name}.known`)
  const lineOf = (name: string) => new LogClient(shardLine(thread, 0, knownOf(name)))
  /** A node that owns the shard. */
  const owner = (name: string): TestShard => {
    const writer = { node: name, incarnation: 1 }
    const shard = new TestShard(pathOf(name), {
      openLog: (from, rowOf) => new ClusterLog({ ...secret, writer, client: lineOf(name) }, from, rowOf),
    })
    open.push(shard)
    return shard
  }
  /** A node that follows the shard. */
  const follow = async (name: string): Promise<FollowedStore> => {
    const store = await FollowedStore.open({ path: pathOf(name), client: lineOf(name), secret })
    open.push(store)
    return store
  }
  /** A node that has caught up with the log, and has confirmed by heartbeats that its end is durable. */
  const followAll = async (name: string): Promise<FollowedStore> => {
    const store = await follow(name)
    for (let confirmed = 0; confirmed < 2; confirmed++) store.confirm(machineClock())
    return store
  }
  /** The first step of a thread that takes the shard over. */
  const takeOver = (name: string) => catchUpStore({ path: pathOf(name), client: lineOf(name), secret })
  const end = async () => {
    const [row] = await postgres.query<{ segment: string; hash: Buffer }>(
      'SELECT segment, hash FROM test_segments ORDER BY segment DESC LIMIT 1',
    )
    return row && { number: Number(row.segment), hash: row.hash }
  }
  const loseLast = () =>
    postgres.query('DELETE FROM test_segments WHERE segment = (SELECT max(segment) FROM test_segments)')

  it('is the appended segment as soon as the append is answered', async () => {
    const shard = owner('a')
    expect(readKnownEnd(knownOf('a'))).toEqual(await end())
    shard.ask(appendNumber('agent', 0))
    expect(readKnownEnd(knownOf('a'))).toEqual(await end())
  })

  it('is the followed segment once a heartbeat is confirmed that was sent after the segment was read', async () => {
    owner('a').ask(appendNumber('agent', 0))
    const followed = await follow('b')
    const sentBeforeMs = machineClock() - 1
    followed.confirm(machineClock())
    followed.confirm(sentBeforeMs)
    expect(readKnownEnd(knownOf('b'))).toBeUndefined()
    followed.confirm(machineClock())
    expect(readKnownEnd(knownOf('b'))).toEqual(await end())
  })

  it('prevents a node from following or owning a log that ends earlier', async () => {
    owner('a').ask(appendNumber('agent', 0))
    const followed = await followAll('b')
    await loseLast()
    expect(() => followed.confirm(machineClock())).toThrow('Segment 2 is no longer in the cluster’s log')
    await open.pop()?.close()
    const text =
      /this node knows segment 2 \(\w{16}…\), but the cluster’s log ends with segment 1 \(\w{16}…\).* --shard 0 --from 2$/
    await expect(follow('b')).rejects.toThrow(text)
    for (const name of ['a', 'b']) await expect(takeOver(name)).rejects.toThrow(text)
    expect(existsSync(pathOf('b.other-1'))).toBe(false)
    expect((await end())?.number).toBe(1)
  })

  it('prevents a node from following or owning a log that has continued without its segment', async () => {
    owner('a').ask(appendNumber('agent', 0))
    await followAll('b')
    await open.pop()?.close()
    await loseLast()
    // This node does not know the lost segment.
    const other = owner('c')
    other.ask(appendNumber('agent', 1))
    other.ask(appendNumber('agent', 2))
    const text = /knows segment 2 \(\w{16}…\), but the cluster’s log has a different segment 2 \(.* --from 2$/
    await expect(follow('b')).rejects.toThrow(text)
    await expect(takeOver('b')).rejects.toThrow(text)
  })

  it('prevents a node from following an empty log', async () => {
    owner('a')
    await postgres.query('DELETE FROM test_segments')
    await expect(follow('a')).rejects.toThrow(/the cluster’s log has no segment of it.* --from 0$/)
  })

  it('is not a segment that was read and never confirmed: such a store is set aside and rebuilt', async () => {
    owner('a').ask(appendNumber('agent', 0))
    const followed = await follow('b')
    followed.confirm(machineClock())
    await open.pop()?.close()
    await loseLast()
    expect((await follow('b')).result).toMatchObject({ kind: 'setAside', place: pathOf('b.other-1') })
  })

  it('is checked again after a log was opened, because rows may be removed while it is read', async () => {
    const shard = owner('a')
    shard.ask(appendNumber('agent', 0))
    const log = new ClusterLog(
      { ...secret, writer: { node: 'a', incarnation: 1 }, client: lineOf('a') },
      undefined,
      () => undefined,
    )
    const reading = log.read()[Symbol.iterator]()
    reading.next()
    await loseLast()
    expect(() => reading.next()).toThrow(lostLogMessage)
    await log.close()
    expect((await end())?.number).toBe(1)
  })
})
