import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { lostLogMessage } from '../../src/protocol/fenced.js'
import { limits } from '../../src/base/limits/limits.js'
import { pooledRandom } from '../../src/base/random.js'
import { NodeTable } from '../../src/cluster/database/nodes.js'
import { SegmentRegister } from '../../src/cluster/database/register.js'
import type { Command, Outcome } from '../../src/protocol/messages.js'
import { Session } from '../../src/cluster/database/session.js'
import { statementsOf } from '../../src/cluster/database/statements.js'
import { ClusterLog } from '../../workers/store/replica/cluster-log.js'
import {
  decodeClusterSegment,
  encodeClusterSegment,
  firstSegment,
  noWriter,
} from '../../workers/store/replica/cluster-segment.js'
import { FollowedStore } from '../../workers/store/replica/followed-store.js'
import { LogClient } from '../../workers/store/replica/log-client.js'
import { detachStore, pullStore } from '../../workers/store/replica/node-store.js'
import { encodeChanges } from '../../workers/store/log/row-change.js'
import type { OpenLog } from '../../workers/store/log/shard-log.js'
import { importedBlocksFrom } from '../../workers/store/tables/tables.js'
import { logSettings, shardLine } from '../support/cluster/shard-line.js'
import { eventually } from '../support/eventually.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'
import { TestShard, appendNumber, replyOf } from '../support/shard/shard.js'

const tables = 'test'
const statements = statementsOf(tables)
/** The cluster of test shards. */
const secret = { cluster: '07'.repeat(16), masterSeed: Buffer.alloc(32, 7), random: pooledRandom() }

const append = (text: string): Command => ({
  kind: 'recordAppend',
  agent: 'agent',
  emerge: false,
  body: Buffer.from(JSON.stringify({ data: { text } })),
  options: {},
})

const erasing = (hash: string): Command => ({
  kind: 'recordMutate',
  agent: 'agent',
  action: 'erase',
  hash,
  principal: 'root',
  options: {},
})

describe.skipIf(noPostgres)('a shard whose log is in PostgreSQL', () => {
  let postgres: TestPostgres
  let thread: Worker
  const open: TestShard[] = []

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

  afterEach(async () => {
    for (const shard of open.splice(0)) await shard.remove()
    for (const statement of statements.drop) await postgres.query(statement)
  })

  /** Creates the tables, and begins the log of shard 0. */
  const begin = async () => {
    for (const statement of statements.create) await postgres.query(statement)
    const urls = [postgres.url]
    const register = new SegmentRegister({ urls, statements, nowMs: () => 0, chance: () => 0 })
    await register.begin(firstSegment(0, secret))
    await register.close()
  }
  const lineOf = () => shardLine(thread, 0)
  const logOf =
    (node: string): OpenLog =>
    (from, rowOf) => {
      const writer = { node, incarnation: 1 }
      return new ClusterLog({ ...secret, writer, client: new LogClient(lineOf()) }, from, rowOf)
    }
  /** The shard of a node, in a separate directory. */
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

  it('survives the loss of its directory, and continues', async () => {
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

  it('writes each group to the log before it answers', async () => {
    await begin()
    const shard = node('a')
    shard.ask(appendNumber('agent', 0))
    expect(await kinds()).toEqual(['base', 'open', 'group'])
  })

  it('reports a sync only after the current turn, so that the turn is not handled twice', async () => {
    await begin()
    const log = logOf('a')(undefined, () => undefined)
    for (const _segment of log.read());
    log.append(encodeChanges([]))
    let isReported = false
    log.syncSoon(() => (isReported = true))
    log.syncNow()
    expect(isReported).toBe(false)
    await eventually(() => isReported)
    await log.close()
  })

  it('belongs to its owner while that node is alive, and to any node after a transfer', async () => {
    await begin()
    const session = await Session.open([postgres.url])
    const { rows } = logSettings([postgres.url], tables)
    const nodes = new NodeTable(session, statements, { secret: rows, clock: () => 1 })
    await nodes.join({ node: 'a', address: '', formatMax: 1, settingsDigest: '' })
    await session.close()
    const first = node('a')
    first.ask(appendNumber('agent', 0))
    expect(() => node('b')).toThrow('The node a owns the shard, and is alive')
    first.store.transfer()
    expect(await kinds()).toEqual(['base', 'open', 'group', 'close'])
    expect(() => first.ask(appendNumber('agent', 1))).toThrow('was transferred')
    const second = node('b')
    second.ask(appendNumber('agent', 1))
    expect(headOf(second).seq).toBe(2)
    expect(await kinds()).toEqual(['base', 'open', 'group', 'close', 'open', 'group'])
  })

  it('is fenced by a node that opened the log later, and that node continues', async () => {
    await begin()
    const one = node('a')
    one.ask(appendNumber('agent', 0))
    const other = node('b')
    expect(headOf(other)).toEqual(headOf(one))
    other.ask(appendNumber('agent', 1))
    expect(() => one.ask(appendNumber('agent', 2))).toThrow('Another node owns the shard')
    expect(headOf(other).seq).toBe(2)
  })

  it('has no body of an erased record any more, and a new node has the rest', async () => {
    await begin()
    const shard = node('a')
    const bodies = ['first secret', 'second secret', 'what stays']
    replyOf(shard.ask({ kind: 'agentCreate', agent: 'agent', zone: 'free', options: {} }))
    const written = shard.run(...bodies.map(append))
    const segmentsWith = async (text: string) => {
      const like = `SELECT 1 FROM test_segments WHERE position($1::bytea IN blocks) > 0 OR position($1::bytea IN state) > 0`
      return (await postgres.query(like, [Buffer.from(text)])).length
    }
    expect(await Promise.all(bodies.map(segmentsWith))).toEqual([1, 1, 1])
    const erase = (outcome: Outcome | undefined) => replyOf(shard.ask(erasing(replyOf(outcome).content_hash)))
    erase(written[0])
    expect(await Promise.all(bodies.map(segmentsWith))).toEqual([0, 1, 1])
    erase(written[1])
    expect(await Promise.all(bodies.map(segmentsWith))).toEqual([0, 0, 1])
    const head = headOf(shard)
    const other = node('b')
    expect(headOf(other)).toEqual(head)
    const shown = written.map((outcome) =>
      JSON.stringify(
        replyOf(other.ask({ kind: 'recordGet', agent: 'agent', hash: replyOf(outcome).content_hash })),
      ),
    )
    expect(shown[0]).toContain('erased')
    expect(shown[1]).toContain('erased')
    expect(shown[2]).toContain('what stays')
  })

  it('erases in place in a store that already had the record', async () => {
    await begin()
    const one = node('a')
    replyOf(one.ask({ kind: 'agentCreate', agent: 'agent', zone: 'free', options: {} }))
    const [written] = one.run(append('a secret'), append('what stays'))
    one.store.flush()
    const { path } = one
    await one.close()
    const other = node('b')
    replyOf(other.ask(erasing(replyOf(written).content_hash)))
    const again = new TestShard(path, { openLog: logOf('a') })
    open.push(again)
    const { content_hash: hash } = replyOf(written)
    expect(JSON.stringify(replyOf(again.ask({ kind: 'recordGet', agent: 'agent', hash })))).toContain(
      'erased',
    )
    expect(readFileSync(join(path, 'data.mdb')).includes('a secret')).toBe(true)
    again.runBackgroundWork()
    expect(readFileSync(join(path, 'data.mdb')).includes('a secret')).toBe(false)
  })

  it('leaves no erased body in a following store after that was opened', async () => {
    await begin()
    const one = node('a')
    replyOf(one.ask({ kind: 'agentCreate', agent: 'agent', zone: 'free', options: {} }))
    const path = mkdtempSync(join(tmpdir(), 'strandfast-followed-'))
    const follow = async () => {
      const line = new LogClient(lineOf())
      const store = await FollowedStore.open({ path: join(path, 'store'), client: line, secret })
      await store.close()
      line.close()
      return readFileSync(join(path, 'store/data.mdb'))
    }
    try {
      const [written] = one.run(append('a secret'), append('what stays'))
      expect((await follow()).includes('a secret')).toBe(true)
      replyOf(one.ask(erasing(replyOf(written).content_hash)))
      expect((await follow()).includes('a secret')).toBe(false)
    } finally {
      rmSync(path, { recursive: true, force: true })
    }
  })

  it('is read beyond a segment if a body up to it was erased since, and the copy has the erasure', async () => {
    await begin()
    const one = node('a')
    replyOf(one.ask({ kind: 'agentCreate', agent: 'agent', zone: 'free', options: {} }))
    const written = one.ask(append('a secret'))
    const upTo = (await kinds()).length - 1
    for (let n = 0; n < 3; n++) one.ask(append(`later ${n}`))
    const directory = mkdtempSync(join(tmpdir(), 'strandfast-pulled-'))
    const pulled = (name: string, until = upTo) =>
      pullStore({ path: join(directory, name), channel: lineOf(), secret, upTo: until })
    try {
      expect(await pulled('before')).toBe(upTo)
      replyOf(one.ask(erasing(replyOf(written).content_hash)))
      // Nothing of the erased segment is read again.
      expect(await pulled('before')).toBe(upTo)
      const end = (await kinds()).length - 1
      expect(await pulled('after')).toBe(end)
      expect(await pulled('before', end)).toBe(end)
      await detachStore(join(directory, 'before'))
      expect(readFileSync(join(directory, 'before/data.mdb')).includes('a secret')).toBe(false)
      await postgres.query('DELETE FROM test_segments WHERE segment > $1', [upTo])
      await expect(pulled('lost')).rejects.toThrow('lacks the body of a record that was never erased')
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  it('is read in whole segments, so that an erasure changes none while it is read', async () => {
    await begin()
    const one = node('a')
    replyOf(one.ask({ kind: 'agentCreate', agent: 'agent', zone: 'free', options: {} }))
    // Incompressible, and more than fits into one read.
    const large = Array.from({ length: 240 }, () => append(randomBytes(24_000).toString('base64')))
    const written = one.run(...large).at(-1)
    const client = new LogClient(lineOf())
    const reading = client.segments(-1)
    reading.next()
    replyOf(one.ask(erasing(replyOf(written).content_hash)))
    const parts: number[] = []
    for (const rows of reading) {
      parts.push(rows.length)
      expect(() => decodeClusterSegment(rows, { ...secret, what: 'blocks' })).not.toThrow()
    }
    client.close()
    expect(Math.max(...parts)).toBeGreaterThan(limits.clusterReadBytes / limits.clusterPartBytes)
  })

  it('detects a missing segment when a record in it is to be erased', async () => {
    await begin()
    const shard = node('a')
    replyOf(shard.ask({ kind: 'agentCreate', agent: 'agent', zone: 'free', options: {} }))
    const written = [shard.ask(append('first')), shard.ask(append('second'))]
    await postgres.query("DELETE FROM test_segments WHERE position('first'::bytea IN blocks) > 0")
    expect(() => shard.ask(erasing(replyOf(written[0]).content_hash))).toThrow(lostLogMessage)
    expect(await kinds()).toEqual(['base', 'open', 'group', 'group'])
  })

  it.each([
    ['missing', 'DELETE FROM test_segments WHERE part = 1'],
    ['different', "UPDATE test_segments SET blocks = '\\x00' WHERE part = 1"],
  ])(
    'detects that a part of a segment is %s when a record in it is to be erased',
    async (_what, statement) => {
      await begin()
      const shard = node('a')
      replyOf(shard.ask({ kind: 'agentCreate', agent: 'agent', zone: 'free', options: {} }))
      // Incompressible, and more than fits into one part.
      const large = Array.from({ length: 60 }, () => append(randomBytes(24_000).toString('base64')))
      const [written] = shard.run(...large)
      expect(await postgres.query(`${statement} RETURNING part`)).toHaveLength(1)
      expect(() => shard.ask(erasing(replyOf(written).content_hash))).toThrow(lostLogMessage)
    },
  )

  it('reads the log again if its unacknowledged end disappears while it is opened', async () => {
    await begin()
    const shard = node('a')
    shard.ask(appendNumber('agent', 0))
    await shard.close()
    const log = logOf('b')(undefined, () => undefined)
    const reading = log.read()[Symbol.iterator]()
    reading.next()
    await postgres.query('DELETE FROM test_segments WHERE segment = 2')
    expect(() => reading.next()).toThrow('reading it again')
    await log.close()
    const again = node('b')
    again.ask(appendNumber('agent', 0))
    expect(await kinds()).toEqual(['base', 'open', 'open', 'group'])
  })

  it('rejects everything that was not written by a node with its master seed', async () => {
    await begin()
    node('a').ask(appendNumber('agent', 0))
    for (const [change, message] of [
      ["header = replace(header, 'node a', 'node b')", 'was not written by a node with this master seed'],
      ['state = set_byte(state, 40, get_byte(state, 40) # 1)', 'has rows that do not match its header'],
      ['blocks = set_byte(blocks, 60, get_byte(blocks, 60) # 1)', 'has rows that do not match its header'],
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

  it('rejects blocks from before the log without the checkpoint that has their other rows', async () => {
    await begin()
    const register = new SegmentRegister({
      urls: [postgres.url],
      statements,
      nowMs: () => 0,
      chance: () => 0,
    })
    const before = firstSegment(0, secret)
    const about = {
      shard: 0,
      segment: 1,
      kind: 'history',
      writer: noWriter,
      lastGroup: 0,
      groups: 0,
    } as const
    const next = { blocks: 0, imported: importedBlocksFrom }
    const segment = encodeClusterSegment({ ...about, next, prev: before.hash }, [], secret)
    const parts = segment.parts.map(({ blocks }) => ({ blocks: Buffer.from(blocks), state: null }))
    expect(await register.append(before, { shard: 0, number: 1, ...segment, parts })).toEqual({
      kind: 'durable',
    })
    await register.close()
    expect(() => node('b')).toThrow('in a checkpoint, which is missing')
  })
})
