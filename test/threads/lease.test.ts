import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../dist/src/base/limits/limits.js'
import { ReaderPool } from '../../dist/src/dispatch/pools/reader-pool.js'
import type { ClusterAccess } from '../../dist/src/dispatch/threads/shard-port.js'
import { ShardThreads, type ShardsListener } from '../../dist/src/dispatch/threads/shard-threads.js'
import type { Shards } from '../../dist/src/dispatch/links/shards.js'
import { readsBy } from '../../dist/src/protocol/reader-tasks.js'
import { LeaseMemory } from '../../dist/src/protocol/lease-memory.js'
import type { Command, Outcome } from '../../dist/src/protocol/messages.js'
import type { StreamEvent } from '../../dist/src/protocol/stream-messages.js'
import { appendNumber, testAuthRules } from '../support/shard/shard.js'

/*
 * The answers of a node whose lease ends while its shards and readers are working, with a lease by the clock
 * of the test. The logs of the shards are files; tests with the database are in test/cluster.
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
  const linesOf = (() => undefined) as unknown as ClusterAccess['channelsOf']
  const options = {
    cacheBytesMax: 1_048_576,
    stallMaxMs: 0,
    cluster: { lease, channelsOf: linesOf, abandon: async () => {} },
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
  catchUp: () => Promise.resolve(),
  restarted: () => undefined,
  resumed: () => undefined,
  replaced: () => undefined,
  died: () => Promise.resolve(),
  hung: () => undefined,
  lost: () => undefined,
}

/** Sends a command to a shard, and ends the lease before the answer. */
function askAsLeaseEnds(command: Command): Promise<Outcome> {
  const outcome = shards.request('notes', command)
  nowMs = LEASE_MS
  return outcome
}

function replied(outcome: Outcome): { content_hash: string } {
  if (outcome.kind !== 'reply') throw new Error(`Expected a reply, got ${JSON.stringify(outcome)}`)
  return JSON.parse(outcome.body)
}

const create: Command = { kind: 'agentCreate', agent: 'notes', zone: 'free', options: {} }
const head: Command = { kind: 'agentHead', agent: 'notes' }
const unavailable = { code: 'unavailable', retryAfterSecs: 1 }

describe('a lease that ends while a shard is working', () => {
  it('causes a read to be refused, which the shard may have carried out after the end', async () => {
    expect(await shards.request('notes', create)).toMatchObject({ kind: 'reply' })
    expect(await askAsLeaseEnds(head)).toMatchObject(unavailable)
    expect(await shards.request('notes', head)).toMatchObject(unavailable)
  })

  it('does not prevent the acknowledgement of a write that is in the log', async () => {
    expect(await askAsLeaseEnds(create)).toMatchObject({ kind: 'reply', status: 201 })
    expect(await shards.request('notes', create)).toMatchObject(unavailable)
  })

  it('withholds the refusal of a write and a replayed answer, because nothing was appended with them', async () => {
    const idempotency = { caller: 'test', key: 'once' }
    const once = appendNumber('notes', 1, { idempotency })
    expect(await shards.request('notes', once)).toMatchObject({ kind: 'reply' })
    expect(await shards.request('notes', once)).toMatchObject({ replayed: true })
    const again = shards.request('notes', once)
    const refused = askAsLeaseEnds(create)
    expect(await again).toMatchObject({ code: 'outcome_unknown' })
    expect(await refused).toMatchObject({ code: 'outcome_unknown' })
  })

  it('does not prevent a refusal that was decided in a group with an append', async () => {
    await shards.request('notes', create)
    const refused = shards.request('notes', create)
    const appended = askAsLeaseEnds(appendNumber('notes', 1))
    expect(await refused).toMatchObject({ code: 'agent_exists' })
    expect(await appended).toMatchObject({ kind: 'reply' })
  })

  it('prevents answers from the cache of records, and new entries in the cache', async () => {
    const { content_hash: hash } = replied(await shards.request('notes', appendNumber('notes', 1)))
    const get: Command = { kind: 'recordGet', agent: 'notes', hash }
    expect(await askAsLeaseEnds(get)).toMatchObject(unavailable)
    nowMs = 0
    expect(await shards.request('notes', get)).toMatchObject({ kind: 'reply' })
    expect(await shards.request('notes', get)).toMatchObject({ kind: 'reply' })
    expect(shards.cacheFigures()).toMatchObject({ hits: 1, misses: 2 })
    nowMs = LEASE_MS
    expect(await shards.request('notes', get)).toMatchObject(unavailable)
  })

  it('leaves no agent watched whose streams have ended, and still sends appended records to streams', async () => {
    const watch = (on: boolean): Command => ({ kind: 'watch', agent: 'notes', on, front: 0 })
    expect(await askAsLeaseEnds(watch(true))).toMatchObject(unavailable)
    nowMs = 0
    await askAsLeaseEnds(appendNumber('notes', 1))
    expect(events.map(({ seq }) => seq)).toEqual([0, 1])
    await shards.request('notes', watch(false))
    nowMs = 0
    await shards.request('notes', appendNumber('notes', 2))
    expect(events).toHaveLength(2)
  })
})

describe('a lease that ends while a reader is working', () => {
  it('causes its page and its tree to be refused', async () => {
    for (const n of [1, 2, 3]) await shards.request('notes', appendNumber('notes', n))
    const located = await shards.request('notes', { kind: 'strandLocate', agent: 'notes' })
    if (located.kind !== 'located') throw new Error(`Expected a strand, got ${JSON.stringify(located)}`)
    const { shard, agentNo, strand, publicKey, headSeq } = located
    const view = { shard, agentNo, strand, publicKeys: [publicKey] }
    const read = readsBy(readers, 'root')
    const page = { ...view, fromSeq: 0, toSeq: headSeq, bytesMax: 65_536 }
    const reads = [
      () => read('exportPage', page),
      () => read('treeRoot', { shard, agentNo, size: headSeq }),
      () => read('sealEnd', { shard, agentNo, seq: headSeq }),
    ]
    for (const start of reads) {
      nowMs = 0
      expect(await start()).toBeDefined()
      const inFlight = start()
      nowMs = LEASE_MS
      await expect(inFlight).rejects.toMatchObject({ refusal: unavailable })
    }
  })
})
