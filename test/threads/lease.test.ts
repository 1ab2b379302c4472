import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../dist/src/base/limits/limits.js'
import { ReaderPool } from '../../dist/src/dispatch/pools/reader-pool.js'
import type { ClusterOwner } from '../../dist/src/dispatch/threads/shard-port.js'
import { ShardThreads, type ShardsListener } from '../../dist/src/dispatch/threads/shard-threads.js'
import type { Shards } from '../../dist/src/dispatch/links/shards.js'
import { readsBy } from '../../dist/src/protocol/reader-tasks.js'
import { LeaseMemory } from '../../dist/src/protocol/lease-memory.js'
import type { Command, Outcome, StreamEvent } from '../../dist/src/protocol/messages.js'
import { appendNumber, testAuthRules } from '../support/shard/shard.js'

/*
 * What leaves a node whose lease ends while it is at work: its own shards and readers, beside a lease by the clock of the
 * test. The shards have their logs in files: what is about the database is in test/cluster.
 */

const LEASE_MS = 1_000

let directory: string
let nowMs: number
let threads: ShardThreads
let shards: Shards
let readers: ReaderPool
let events: StreamEvent[]

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-lease-'))
  nowMs = 0
  const lease = new LeaseMemory(undefined, () => nowMs)
  lease.extend(LEASE_MS)
  const settings = {
    shard: 0,
    path: join(directory, 'shard-0'),
    masterSeed: Buffer.alloc(32, 7),
    recordBytesMax: limits.recordBytesDefault,
    signing: 'record' as const,
    auth: testAuthRules,
    proposals: { governedAutoApproveSecs: 60 },
  }
  const linesOf = (() => undefined) as unknown as ClusterOwner['linesOf']
  const options = {
    cacheBytesMax: 1_048_576,
    silenceMaxMs: 0,
    cluster: { lease, linesOf, abandon: async () => {} },
  }
  threads = new ShardThreads([settings], options)
  shards = threads.shards
  events = []
  await threads.start(listener)
  readers = new ReaderPool(directory, { lease })
})

afterEach(async () => {
  await readers.close()
  await threads.close()
  rmSync(directory, { recursive: true, force: true })
})

const listener: ShardsListener = {
  events: (_shard, some) => events.push(...some),
  notice: () => undefined,
  learn: () => Promise.resolve(),
  restarted: () => undefined,
  resumed: () => undefined,
  replaced: () => undefined,
  died: () => Promise.resolve(),
  hung: () => undefined,
  lost: () => undefined,
}

/** Asks a shard, and has the lease end while it is at that. */
function askAsItEnds(command: Command): Promise<Outcome> {
  const asked = shards.ask('notes', command)
  nowMs = LEASE_MS
  return asked
}

function replied(outcome: Outcome): { content_hash: string } {
  if (outcome.kind !== 'reply') throw new Error(`Expected a reply, got ${JSON.stringify(outcome)}`)
  return JSON.parse(outcome.body)
}

const create: Command = { kind: 'agentCreate', agent: 'notes', zone: 'free', options: {} }
const head: Command = { kind: 'agentHead', agent: 'notes' }
const away = { code: 'unavailable', retryAfterSecs: 1 }

describe('a lease that ends while a shard is at work', () => {
  it('has a read refused, which the shard may have carried out after that', async () => {
    expect(await shards.ask('notes', create)).toMatchObject({ kind: 'reply' })
    expect(await askAsItEnds(head)).toMatchObject(away)
    expect(await shards.ask('notes', head)).toMatchObject(away)
  })

  it('has a write told whose group the log has taken', async () => {
    expect(await askAsItEnds(create)).toMatchObject({ kind: 'reply', status: 201 })
    expect(await shards.ask('notes', create)).toMatchObject(away)
  })

  it('has a refusal of a write not told, nor an answer given again: nothing was appended with them', async () => {
    const idempotency = { caller: 'test', key: 'once' }
    const once = appendNumber('notes', 1, { idempotency })
    expect(await shards.ask('notes', once)).toMatchObject({ kind: 'reply' })
    expect(await shards.ask('notes', once)).toMatchObject({ replayed: true })
    const again = shards.ask('notes', once)
    const refused = askAsItEnds(create)
    expect(await again).toMatchObject({ code: 'outcome_unknown' })
    expect(await refused).toMatchObject({ code: 'outcome_unknown' })
  })

  it('has a refusal told that was decided together with a group', async () => {
    await shards.ask('notes', create)
    const refused = shards.ask('notes', create)
    const appended = askAsItEnds(appendNumber('notes', 1))
    expect(await refused).toMatchObject({ code: 'agent_exists' })
    expect(await appended).toMatchObject({ kind: 'reply' })
  })

  it('has nothing given from the cache of records, nor kept there', async () => {
    const { content_hash: hash } = replied(await shards.ask('notes', appendNumber('notes', 1)))
    const get: Command = { kind: 'recordGet', agent: 'notes', hash }
    expect(await askAsItEnds(get)).toMatchObject(away)
    nowMs = 0
    expect(await shards.ask('notes', get)).toMatchObject({ kind: 'reply' })
    expect(await shards.ask('notes', get)).toMatchObject({ kind: 'reply' })
    expect(shards.cacheFigures()).toMatchObject({ hits: 1, misses: 2 })
    nowMs = LEASE_MS
    expect(await shards.ask('notes', get)).toMatchObject(away)
  })

  it('leaves no agent watched whose streams have ended, and has streams told of what is appended', async () => {
    const watch = (on: boolean): Command => ({ kind: 'watch', agent: 'notes', on, front: 0 })
    expect(await askAsItEnds(watch(true))).toMatchObject(away)
    nowMs = 0
    await askAsItEnds(appendNumber('notes', 1))
    expect(events).toHaveLength(1)
    await shards.ask('notes', watch(false))
    nowMs = 0
    await shards.ask('notes', appendNumber('notes', 2))
    expect(events).toHaveLength(1)
  })
})

describe('a lease that ends while a reader is at work', () => {
  it('has its page and its tree refused', async () => {
    for (const n of [1, 2, 3]) await shards.ask('notes', appendNumber('notes', n))
    const located = await shards.ask('notes', { kind: 'strandLocate', agent: 'notes' })
    if (located.kind !== 'located') throw new Error(`Expected a strand, got ${JSON.stringify(located)}`)
    const { shard, agentNo, strand, publicKey, headSeq } = located
    const view = { shard, agentNo, strand, publicKeys: [publicKey] }
    const read = readsBy(readers)
    const page = { ...view, fromSeq: 0, toSeq: headSeq, bytesMax: 65_536 }
    const reads = [
      () => read('exportPage', page),
      () => read('treeRoot', { shard, agentNo, size: headSeq }),
      () => read('sealEnd', { shard, agentNo, seq: headSeq }),
    ]
    for (const again of reads) {
      nowMs = 0
      expect(await again()).toBeDefined()
      const under = again()
      nowMs = LEASE_MS
      await expect(under).rejects.toMatchObject({ refusal: away })
    }
  })
})
