import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../dist/src/base/limits/limits.js'
import { ShardThreads, type ShardsListener } from '../../dist/src/dispatch/threads/shard-threads.js'
import type { FrontNotice, Shards } from '../../dist/src/dispatch/links/shards.js'
import { encodeOutcomes } from '../../dist/src/protocol/frame.js'
import type { Command, Outcome } from '../../dist/src/protocol/messages.js'
import type { StreamEvent } from '../../dist/src/protocol/stream-messages.js'
import type { UserAccess } from '../../dist/src/protocol/command-options.js'
import { testAuthRules } from '../support/shard/shard.js'
import { captureWorkers, type WorkerCapture } from '../support/server/worker-capture.js'

let directory: string
let capture: WorkerCapture
let threads: ShardThreads
let shards: Shards
let events: StreamEvent[]
/** Events and notices, in the order in which they arrived. */
let observed: string[]
let died: Error[]
/** The answers of new threads to queries, and whether the shard served at that time. */
let learnt: string[]
let restarted: () => void
/** The failures that were reported for the log. */
let failures: string[]

const CACHE_BYTES = 1_048_576

function makeShards(count: number): ShardThreads {
  const settings = Array.from({ length: count }, (_none, shard) => ({
    shard,
    path: join(directory, `shard-${shard}`),
    masterSeed: Buffer.alloc(32, 7),
    recordBytesMax: limits.recordBytesDefault,
    signing: 'record' as const,
    auth: testAuthRules,
    proposals: { governedAutoApproveSecs: 60 },
  }))
  return new ShardThreads(settings, { cacheBytesMax: CACHE_BYTES, stallMaxMs: 0 })
}

const listener: ShardsListener = {
  events(_shard, some) {
    events.push(...some)
    observed.push(...some.map(({ agent, seq }) => `${agent} ${seq}`))
  },
  died(_shard, error) {
    died.push(error)
    return Promise.resolve()
  },
  notice: (_shard, notice) => noticed(notice),
  async catchUp(shard, ask) {
    observed.push(`learn ${shard}`)
    learnt.push(codeOf(await ask({ kind: 'agentHead', agent: 'missing' })))
    learnt.push(shards.serving ? 'serves' : 'does not serve yet')
  },
  replaced: () => undefined,
  restarted: () => undefined,
  resumed: () => restarted(),
  hung: () => undefined,
  lost: (shard, reason) => observed.push(`lost ${shard}: ${reason}`),
}

function noticed(notice: FrontNotice): void {
  if (notice.kind === 'storeBuilt') return
  if (notice.kind === 'failed') failures.push(...notice.failures)
  else if (notice.kind === 'apiKeysChanged')
    observed.push(`keys ${notice.changes.created.length} ${notice.changes.removed.length}`)
  else if ('agents' in notice) observed.push(`${notice.kind} of ${notice.agents.join(' ')}`)
  else observed.push(notice.kind)
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-'))
  capture = captureWorkers()
  events = []
  observed = []
  died = []
  learnt = []
  restarted = () => {}
  failures = []
  threads = makeShards(2)
  shards = threads.shards
  await threads.start(listener)
  observed = []
  learnt = []
})

afterEach(async () => {
  await threads.close()
  capture.release()
  rmSync(directory, { recursive: true, force: true })
})

function append(agent: string, n: number): Command {
  const idempotency = { caller: 'test', key: `${agent}-${n}` }
  const body = Buffer.from(JSON.stringify({ data: { n } }))
  return { kind: 'recordAppend', agent, emerge: true, body, options: { idempotency } }
}

function ask(agent: string, n: number): Promise<Outcome> {
  return shards.request(agent, append(agent, n))
}

/** Makes the thread that owns `agent` fail; resolves when its replacement serves. */
function failShardOf(agent: string): Promise<void> {
  const again = new Promise<void>((resolve) => (restarted = resolve))
  capture.fail(capture.latest(`shard-${shards.shardOf(agent)}`))
  return again
}

function seqOf(outcome: Outcome): number {
  if (outcome.kind !== 'reply') throw new Error(`Expected a reply, got ${JSON.stringify(outcome)}`)
  return JSON.parse(outcome.body).seq
}

function codeOf(outcome: Outcome): string {
  return 'code' in outcome ? outcome.code : outcome.kind
}

describe('the shards', () => {
  it('carry out the commands of one agent in the order in which they were sent', async () => {
    const outcomes = await Promise.all(Array.from({ length: 500 }, (_none, n) => ask('ordered', n)))
    expect(outcomes.map(seqOf)).toEqual(outcomes.map((_outcome, index) => index + 1))
  })

  it('answer each command once in every shard', async () => {
    const agents = Array.from({ length: 200 }, (_none, index) => `agent-${index}`)
    const outcomes = await Promise.all(agents.map((agent) => ask(agent, 0)))
    expect(outcomes.map(seqOf)).toEqual(agents.map(() => 1))
    const lists = await shards.requestAll({ kind: 'agentList', prefix: '', after: '', limit: 1_000 })
    const names = lists.flatMap((list) => (list.kind === 'names' ? list.names : []))
    expect(names.sort()).toEqual([...agents].sort())
  })

  it('refuse commands beyond the bound of a queue with overloaded, and carry out the others and the end of uploads', async () => {
    const command: Command = { kind: 'agentHead', agent: 'missing' }
    const requests = Array.from({ length: limits.shardQueueMax + 3 }, () => shards.requestShard(0, command))
    const end = shards.requestShard(0, { kind: 'uploadsEnd', caller: 'key', options: {} })
    const outcomes = await Promise.all(requests)
    expect(codeOf(await end)).toBe('done')
    const refused = outcomes.filter((outcome) => codeOf(outcome) === 'overloaded')
    expect(refused).toHaveLength(3)
    for (const outcome of refused) {
      expect(outcome).toMatchObject({ retryAfterSecs: expect.any(Number) })
    }
    expect(outcomes.filter((outcome) => codeOf(outcome) === 'agent_not_found')).toHaveLength(
      limits.shardQueueMax,
    )
    expect(codeOf(await shards.requestShard(0, command))).toBe('agent_not_found')
  })
})

describe('a record that was read by its hash', () => {
  let hash: string

  function read(agent = 'kept', access?: UserAccess): Promise<Outcome> {
    return shards.request(agent, { kind: 'recordGet', agent, hash, ...(access !== undefined && { access }) })
  }

  /**
   * Lets users read the records with this `n`, or with the `n` of their `app_metadata` if it is undefined.
   */
  function allowReading(n: number | undefined): Promise<Outcome> {
    const condition = { field: 'n', op: 'eq' as const, value: n ?? '$jwt.app_metadata.n' }
    const policies = [{ actions: ['read' as const], conditions: [condition] }]
    const options = {}
    return shards.request('kept', {
      kind: 'policiesSet',
      agent: 'kept',
      policies,
      principal: 'root',
      options,
    })
  }

  function user(sub: string, n: number): UserAccess {
    return {
      claims: { sub, email: `${sub}@example.org`, app_metadata: { n }, user_metadata: {} },
    }
  }

  function mutate(action: 'delete' | 'restore' | 'erase'): Promise<Outcome> {
    const principal = 'root'
    return shards.request('kept', {
      kind: 'recordMutate',
      agent: 'kept',
      action,
      hash,
      principal,
      options: {},
    })
  }

  async function shown(): Promise<Record<string, unknown>> {
    const outcome = await read()
    return outcome.kind === 'reply' ? JSON.parse(outcome.body) : { code: codeOf(outcome) }
  }

  beforeEach(async () => {
    await shards.request('kept', { kind: 'agentCreate', agent: 'kept', zone: 'free', options: {} })
    const outcome = await ask('kept', 1)
    hash = outcome.kind === 'reply' ? JSON.parse(outcome.body).record_id : ''
  })

  it('is read from memory the next time, with the same answer', async () => {
    const first = await read()
    expect(shards.cacheFigures()).toMatchObject({ hits: 0, misses: 1 })
    expect(await read()).toEqual(first)
    expect(shards.cacheFigures()).toMatchObject({ hits: 1, misses: 1 })
  })

  it('is read from memory only by users to whom its shard has shown it', async () => {
    await allowReading(undefined)
    const [ann, bob] = [user('usr_ann', 1), user('usr_bob', 2)]
    const first = await read('kept', ann)
    expect(first).toMatchObject({ kind: 'reply', status: 200 })
    expect(await read('kept', ann)).toEqual(first)
    expect(shards.cacheFigures()).toMatchObject({ hits: 1, misses: 1 })
    expect(codeOf(await read('kept', bob))).toBe('record_not_found')
    expect(codeOf(await read('kept', bob))).toBe('record_not_found')
    expect(await read('kept', ann)).toEqual(first)
    expect(shards.cacheFigures()).toMatchObject({ hits: 2, misses: 3 })
  })

  it('is not read from memory by a user once a change of policies is acknowledged', async () => {
    await allowReading(1)
    const ann = user('usr_ann', 2)
    await read()
    for (let times = 0; times < 2; times++) expect(await read('kept', ann)).toMatchObject({ status: 200 })
    await allowReading(2)
    expect(codeOf(await read('kept', ann))).toBe('record_not_found')
    expect(await read()).toMatchObject({ status: 200 })
    await allowReading(1)
    expect(await read('kept', ann)).toMatchObject({ status: 200 })
  })

  it('is never shown to a user by replaced policies, even with concurrent reads and changes', async () => {
    const ann = user('usr_ann', 2)
    for (let round = 0; round < 50; round++) {
      const change = allowReading(round % 2)
      const reads = Promise.all([read('kept', ann), read('kept', ann), read('kept', ann)])
      await Promise.all([change, reads])
      expect(codeOf(await read('kept', ann)) === 'record_not_found').toBe(round % 2 === 0)
    }
  })

  it('is read from memory by each of many users', async () => {
    await allowReading(1)
    const users = Array.from({ length: limits.recordReadersMax }, (_none, n) => user(`usr_${n}`, n))
    for (const one of [...users, ...users]) await read('kept', one)
    expect(shards.cacheFigures()).toMatchObject({ hits: 8, misses: 8 })
    await read('kept', user('usr_more', 1))
    // The first user was evicted for one more.
    for (const one of users.slice(1)) await read('kept', one)
    expect(shards.cacheFigures()).toMatchObject({ hits: 15, misses: 9 })
  })

  it('is not returned as a record of another agent', async () => {
    await read()
    expect(codeOf(await read('other'))).toBe('agent_not_found')
  })

  it('is returned with its new state once a change of it is acknowledged', async () => {
    expect(await shown()).toMatchObject({ deleted: false, erased: false })
    await mutate('delete')
    expect(await shown()).toMatchObject({ deleted: true })
    await mutate('restore')
    expect(await shown()).toMatchObject({ deleted: false })
    await mutate('erase')
    expect(await shown()).toMatchObject({ erased: true, payload: null })
  })

  it('is never cached with an old state, even with concurrent reads and changes', async () => {
    for (let round = 0; round < 50; round++) {
      const change = mutate(round % 2 === 0 ? 'delete' : 'restore')
      const reads = Promise.all([read(), read(), read()])
      await Promise.all([change, reads])
      expect(await shown()).toMatchObject({ deleted: round % 2 === 0 })
    }
  })

  it('is not read from memory once its shard has died', async () => {
    await read()
    const again = failShardOf('kept')
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        if (shards.serving) return
        clearInterval(timer)
        resolve()
      }, 1)
    })
    expect(codeOf(await read())).toBe('unavailable')
    await again
    expect(await shown()).toMatchObject({ record_id: hash })
  })

  it('is read from its shard again after other records have filled the memory', async () => {
    const large = 'x'.repeat(Math.floor(CACHE_BYTES / 5))
    const hashes: string[] = []
    for (let n = 0; n < 6; n++) {
      const body = Buffer.from(JSON.stringify({ data: { n, large } }))
      const command: Command = { kind: 'recordAppend', agent: 'kept', emerge: false, body, options: {} }
      const outcome = await shards.request('kept', command)
      hashes.push(outcome.kind === 'reply' ? JSON.parse(outcome.body).record_id : '')
    }
    for (hash of [...hashes, ...hashes]) expect(await shown()).toMatchObject({ record_id: hash })
    expect(shards.cacheFigures()).toMatchObject({ hits: 0, misses: 12 })
    expect(shards.cacheFigures().bytes).toBeLessThanOrEqual(CACHE_BYTES)
  })
})

describe('a change of row policies', () => {
  it('is reported before the events of its commit, which may include records decided after it', async () => {
    const agent = 'ruled'
    await shards.request(agent, { kind: 'agentCreate', agent, zone: 'free', options: {} })
    await shards.request(agent, { kind: 'watch', agent, on: true, front: 0 })
    const change: Command = { kind: 'policiesSet', agent, policies: [], principal: 'root', options: {} }
    // The commands are sent in one tick, so that they are one commit.
    await Promise.all([ask(agent, 1), shards.request(agent, change), ask(agent, 2)])
    expect(observed).toEqual(['policiesChanged of ruled', 'ruled 1', 'ruled 2', 'ruled 3'])
  })
})

describe('a shard thread that dies', () => {
  it('causes outcome_unknown for writes and unavailable for reads', async () => {
    await ask('agent', 0)
    const again = failShardOf('agent')
    const writes = Promise.all(Array.from({ length: 20 }, (_none, n) => ask('agent', n + 1)))
    const read = shards.request('agent', { kind: 'agentHead', agent: 'agent' })
    expect(new Set((await writes).map(codeOf))).toEqual(new Set(['outcome_unknown']))
    expect(await read).toMatchObject({ code: 'unavailable', retryAfterSecs: 1 })
    expect(shards.serving).toBe(false)
    expect(codeOf(await ask('agent', 1))).toBe('unavailable')
    await again
    expect(died).toHaveLength(1)
    expect(shards.serving).toBe(true)
  })

  it('is replaced by a thread that is queried for missed changes before it serves', async () => {
    await failShardOf('queried')
    expect(observed.filter((one) => one.startsWith('learn'))).toEqual([`learn ${shards.shardOf('queried')}`])
    expect(learnt).toEqual(['agent_not_found', 'does not serve yet'])
    expect(seqOf(await ask('queried', 1))).toBe(1)
  })

  it('does not affect the other shards', async () => {
    const [mine = '', other = ''] = [0, 1].map(
      (shard) => ['a', 'b', 'c', 'd', 'e', 'f'].find((name) => shards.shardOf(name) === shard) ?? '',
    )
    await ask(mine, 0)
    const again = failShardOf(mine)
    expect(seqOf(await ask(other, 0))).toBe(1)
    await again
  })

  it('is replaced repeatedly, and writes that are retried under an Idempotency-Key exist once', async () => {
    const sent: Promise<Outcome>[] = []
    const waves = 5
    for (let wave = 0; wave < waves; wave++) {
      for (let n = 0; n < 100; n++) sent.push(ask('agent', wave * 200 + n))
      await new Promise((resolve) => setImmediate(resolve))
      const again = failShardOf('agent')
      for (let n = 100; n < 200; n++) sent.push(ask('agent', wave * 200 + n))
      await again
    }
    const codes = new Set((await Promise.all(sent)).map(codeOf))
    expect(codes).toContain('outcome_unknown')
    for (const code of codes) expect(['reply', 'outcome_unknown', 'unavailable']).toContain(code)
    const total = waves * 200
    const outcomes = await Promise.all(Array.from({ length: total }, (_none, n) => ask('agent', n)))
    const seqs = outcomes.map(seqOf).sort((left, right) => left - right)
    expect(seqs).toEqual(Array.from({ length: total }, (_none, index) => index + 1))
    expect(died).toHaveLength(waves)
  })

  it('is replaced by a thread that does not wait for a front which left before the store was open', async () => {
    const [shard, front] = [shards.shardOf('left'), limits.frontsMax]
    const { port1, port2 } = new MessageChannel()
    threads.join(shard, front, port2)
    const started = capture.started.length
    const again = failShardOf('left')
    while (capture.started.length === started) await new Promise((resolve) => setImmediate(resolve))
    threads.leave(front)
    await again
    expect(seqOf(await ask('left', 0))).toBe(1)
    port1.close()
  })

  it('can be closed while it is down', async () => {
    await ask('agent', 0)
    const worker = capture.latest(`shard-${shards.shardOf('agent')}`)
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    capture.fail(worker)
    await ended
    await threads.close()
    expect(shards.serving).toBe(false)
  })
})

// Regression: a callback that made a summary too long for a string ended the process.
it('continues if the callback of an outcome throws, and answers the other commands', async () => {
  const broken = Array.from({ length: 3 }, (_none, n) => append('a', n))
  for (const command of broken) {
    shards.send('a', command, () => {
      throw new RangeError('Invalid string length')
    })
  }
  expect(await ask('a', 3)).toMatchObject({ kind: 'reply' })
  expect(failures.map((text) => text.split('\n')[0])).toEqual(
    broken.map(() => 'RangeError: Invalid string length'),
  )
  const end = failShardOf('a')
  shards.send('a', append('a', 4), () => {
    throw new Error('at the end of its thread')
  })
  await end
  expect(await ask('a', 5)).toMatchObject({ kind: 'reply' })
  expect(died).toHaveLength(1)
})

describe('an invalid frame of a shard', () => {
  it('loses the shard for this process, and callers get outcome_unknown', async () => {
    await ask('read', 1)
    const shard = shards.shardOf('read')
    const pending = ask('read', 2)
    // 0xc1 is the only byte with which no MessagePack value begins.
    capture.latest(`shard-${shard}`).emit('message', new Uint8Array([0, 0, 0, 0, 0xc1]).buffer)
    expect(await pending).toMatchObject({ code: 'outcome_unknown' })
    expect(observed.filter((one) => one.startsWith('lost'))).toEqual([
      expect.stringMatching(new RegExp(`^lost ${shard}: a message of its thread is unreadable`)),
    ])
    expect(await ask('read', 3)).toMatchObject({ code: 'unavailable' })
    await threads.abandon()
  })

  it('can also be an outcome of a command that was not sent', async () => {
    const shard = shards.shardOf('read')
    const frame = { outcomes: [[4_711, { kind: 'done' }]], events: [], notices: [], noticeNo: 0 }
    capture.latest(`shard-${shard}`).emit('message', encodeOutcomes(frame as never))
    expect(observed.at(-1)).toContain('an outcome belongs to a pending command')
    await threads.abandon()
  })
})

describe('the end of the process', () => {
  it('lets each thread exit by itself, not in the middle of an LMDB call', async () => {
    // A terminated thread would exit with 1.
    const codes: unknown[] = []
    for (const { name, worker } of capture.started)
      if (name?.startsWith('shard-') === true) worker.on('exit', (code) => codes.push(code))
    void ask('one', 1)
    await threads.abandon()
    expect(codes).toEqual(Array.from({ length: shards.count }, () => 0))
  })

  it('starts no thread any more', async () => {
    await threads.abandon()
    const before = capture.started.length
    await expect(threads.open(0)).rejects.toThrow('The shards are closing')
    threads.keepSpares()
    expect(capture.started).toHaveLength(before)
  })

  it('lets spare threads, which are waiting for a shard, exit by themselves', async () => {
    const before = capture.started.length
    threads.keepSpares()
    const spares = capture.started.slice(before)
    expect(spares.map(({ name }) => name)).toEqual(spares.map(() => 'shard'))
    expect(spares).not.toHaveLength(0)
    const codes = spares.map(({ worker }) => once(worker, 'exit'))
    await threads.abandon()
    expect(await Promise.all(codes)).toEqual(spares.map(() => [0]))
  })
})
