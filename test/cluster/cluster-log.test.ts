import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel, Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { pooledRandom } from '../../src/base/random.js'
import { SegmentRegister } from '../../src/outbound/cluster/register.js'
import { statementsOf } from '../../src/outbound/cluster/statements.js'
import { ClusterLog } from '../../workers/store/log/cluster-log.js'
import { encodeClusterSegment } from '../../workers/store/log/cluster-segment.js'
import type { OpenLog } from '../../workers/store/log/shard-log.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'
import { TestShard, appendNumber, replyOf } from '../support/shard/shard.js'

const tables = 'test'
const statements = statementsOf(tables)
/** That of test shards. */
const secret = { masterSeed: Buffer.alloc(32, 7), random: pooledRandom() }

describe.skipIf(noPostgres)('a shard whose log is in PostgreSQL', () => {
  let postgres: TestPostgres
  let thread: Worker
  const open: TestShard[] = []

  beforeAll(async () => {
    postgres = await makePostgres()
    await postgres.start()
    const script = new URL('../../dist/workers/cluster-log.js', import.meta.url)
    thread = new Worker(script, { workerData: { urls: [postgres.url], tables } })
  })

  afterAll(async () => {
    await thread?.terminate()
    await postgres?.remove()
  })

  afterEach(async () => {
    for (const shard of open.splice(0)) await shard.remove()
    for (const statement of statements.drop) await postgres.query(statement)
  })

  /** Makes the tables, and begins the log of shard 0. */
  const begin = async () => {
    for (const statement of statements.create) await postgres.query(statement)
    const about = { shard: 0, segment: 0, kind: 'base', node: '', lastGroup: 0, groups: 0 } as const
    const { header, hash, parts } = encodeClusterSegment({ ...about, prev: Buffer.alloc(32) }, [], secret)
    const urls = [postgres.url]
    const register = new SegmentRegister({ urls, statements, nowMs: () => 0, chance: () => 0 })
    const stored = parts.map(({ blocks }) => ({ blocks: Buffer.from(blocks), state: null }))
    await register.begin({ shard: 0, number: 0, hash, header, parts: stored })
    await register.close()
  }
  const logOf =
    (node: string): OpenLog =>
    (from) => {
      const { port1, port2 } = new MessageChannel()
      const answers = new SharedArrayBuffer(4)
      thread.postMessage({ shard: 0, port: port2, answers }, [port2])
      return new ClusterLog({ ...secret, node, line: { shard: 0, port: port1, answers } }, from)
    }
  /** A node's shard, on a directory of its own. */
  const node = (name: string): TestShard => {
    const path = mkdtempSync(join(tmpdir(), 'strandfast-node-'))
    const shard = new TestShard(path, { openLog: logOf(name) })
    open.push(shard)
    return shard
  }
  const headOf = (shard: TestShard) => {
    const { chain_head: hash, seq } = replyOf(shard.ask({ kind: 'agentHead', agent: 'agent' }))
    return { hash, seq }
  }
  const kinds = async () => {
    const rows = await postgres.query<{ header: string }>('SELECT header FROM test_segments ORDER BY segment')
    return rows.map(({ header }) => /^kind (\w+)$/m.exec(header)?.[1])
  }

  it('survives the loss of its directory, and goes on', async () => {
    await begin()
    const first = node('a')
    for (let n = 0; n < 40; n++) first.run(appendNumber('agent', n), appendNumber('other', n))
    const head = headOf(first)
    await first.remove()
    const second = node('a')
    expect(headOf(second)).toEqual(head)
    second.ask(appendNumber('agent', 40))
    expect(headOf(second).seq).toBe(41)
    await second.reopen()
    expect(headOf(second).seq).toBe(41)
  })

  it('has each group in the log before anybody is told', async () => {
    await begin()
    const shard = node('a')
    shard.ask(appendNumber('agent', 0))
    expect(await kinds()).toEqual(['base', 'open', 'group'])
  })

  it('is fenced by who opened the log after it, and the other goes on', async () => {
    await begin()
    const one = node('a')
    one.ask(appendNumber('agent', 0))
    const other = node('b')
    expect(headOf(other)).toEqual(headOf(one))
    other.ask(appendNumber('agent', 1))
    expect(() => one.ask(appendNumber('agent', 2))).toThrow('Another node owns the shard')
    expect(headOf(other).seq).toBe(2)
  })

  it('takes nothing that a node with its master seed did not write', async () => {
    await begin()
    node('a').ask(appendNumber('agent', 0))
    for (const [change, message] of [
      ["header = replace(header, 'node a', 'node b')", 'was not written by a node with this master seed'],
      ['state = set_byte(state, 40, get_byte(state, 40) # 1)', 'holds other rows than its header names'],
      ['blocks = set_byte(blocks, 60, get_byte(blocks, 60) # 1)', 'holds other rows than its header names'],
    ]) {
      await postgres.query('CREATE TABLE kept AS SELECT * FROM test_segments')
      await postgres.query(`UPDATE test_segments SET ${change} WHERE segment = 2`)
      expect(() => node('b'), change).toThrow(message)
      await postgres.query('DELETE FROM test_segments')
      await postgres.query('INSERT INTO test_segments SELECT * FROM kept')
      await postgres.query('DROP TABLE kept')
    }
    await postgres.query('DELETE FROM test_segments WHERE segment = 1')
    expect(() => node('b')).toThrow('of another history')
  })
})
