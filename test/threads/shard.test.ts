import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import type { Command } from '../../src/protocol/messages.js'
import { parseHlc } from '../../src/strand/hlc.js'
import { recordBySeq } from '../../workers/store/tables/records.js'
import { TestShard, appendNumber, codeOf, keyed, replyOf, signed } from '../support/shard/shard.js'

const HOUR_MS = 3_600_000

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})

afterEach(() => shard.remove())

function headOf(agent: string): { hash: string; seq: number } {
  const { chain_head: hash, seq } = replyOf(shard.ask({ kind: 'agentHead', agent }))
  return { hash, seq }
}

function msOf(reply: { timestamp_hlc: string }): number {
  return parseHlc(reply.timestamp_hlc)?.ms ?? Number.NaN
}

describe('commands that arrive together', () => {
  it('are committed together', () => {
    shard.run(...Array.from({ length: 1_000 }, (_none, n) => appendNumber(`agent-${n % 10}`, n)))
    expect(shard.commits).toBe(1)
    expect(shard.frames.at(-1)?.figures).toMatchObject({ commits: 1, records: 1_010, agents: 10 })
  })

  it('are committed in groups of at most their bound', () => {
    const count = limits.commitRecordsMax + 10
    shard.run(...Array.from({ length: count }, (_none, n) => appendNumber('agent', n)))
    expect(shard.commits).toBe(2)
    expect(headOf('agent').seq).toBe(count)
  })

  it('commit nothing if all of them are refused or only read', () => {
    const bad: Command = { ...appendNumber('agent', 0), body: Buffer.from('{') }
    const outcomes = shard.run(bad, { kind: 'agentHead', agent: 'agent' })
    expect(outcomes.map(codeOf)).toEqual(['validation_failed', 'agent_not_found'])
    expect(shard.commits).toBe(0)
  })

  it('each send a heartbeat, so that a busy thread is not considered hung', () => {
    shard.run(...Array.from({ length: 100 }, (_none, n) => appendNumber('agent', n)))
    expect(shard.heartbeats).toBeGreaterThan(100)
    const before = shard.heartbeats
    shard.run(...Array.from({ length: 100 }, (): Command => ({ kind: 'agentHead', agent: 'agent' })))
    expect(shard.heartbeats - before).toBeGreaterThanOrEqual(100)
  })

  it('are read only after the writes that arrived with them', () => {
    const [head, written] = shard.run({ kind: 'agentHead', agent: 'agent' }, appendNumber('agent', 0))
    expect(replyOf(head).chain_head).toBe(replyOf(written).content_hash)
  })

  it('have exactly one winner with If-Match for one head, and the others get the new head', () => {
    const first = replyOf(shard.ask(appendNumber('agent', 0)))
    const race = Array.from({ length: 20 }, (_none, n) =>
      appendNumber('agent', n, { ifMatch: first.content_hash }),
    )
    const [winner, ...losers] = shard.run(...race)
    const head = replyOf(winner).content_hash
    expect(headOf('agent')).toEqual({ hash: head, seq: 2 })
    for (const loser of losers) {
      expect(loser).toMatchObject({ code: 'head_mismatch', extra: { chain_head: head } })
    }
  })

  it('write once under one Idempotency-Key, and all get the same answer', () => {
    const outcomes = shard.run(...Array.from({ length: 5 }, () => appendNumber('agent', 1, keyed('same'))))
    const hashes = new Set(outcomes.map((outcome) => replyOf(outcome).content_hash))
    expect(hashes.size).toBe(1)
    expect(outcomes.map((outcome) => 'replayed' in outcome && outcome.replayed)).toEqual([
      false,
      true,
      true,
      true,
      true,
    ])
    expect(headOf('agent').seq).toBe(1)
  })

  it('write the first of two bodies under one Idempotency-Key, and refuse the second', () => {
    const outcomes = shard.run(
      appendNumber('agent', 1, keyed('same')),
      appendNumber('agent', 2, keyed('same')),
    )
    expect(outcomes.map(codeOf)).toEqual(['reply', 'idempotency_key_reused'])
    expect(headOf('agent').seq).toBe(1)
  })
})

describe('signing by group', () => {
  it('signs the last record of each agent, and the other records name its seq', () => {
    const group = [0, 1, 2].flatMap((n) => [
      appendNumber('one', n, signed('group')),
      appendNumber('two', n, signed('group')),
    ])
    const replies = shard.run(...group).map(replyOf)
    for (const agent of ['one', 'two']) {
      const own = replies.filter((reply) => reply.agent === agent)
      expect(own.map((reply) => reply.sealed_by)).toEqual([3, 3, undefined])
      expect(own.map((reply) => typeof reply.signature === 'string')).toEqual([false, false, true])
    }
  })

  it('signs a record that requests a signature, which then seals the earlier records', () => {
    const replies = shard
      .run(
        appendNumber('agent', 0, signed('group')),
        appendNumber('agent', 1, signed('record')),
        appendNumber('agent', 2, signed('group')),
        appendNumber('agent', 3, signed('group')),
      )
      .map(replyOf)
    expect(replies.map((reply) => reply.sealed_by)).toEqual([2, undefined, 4, undefined])
  })

  it('signs the genesis record separately', () => {
    shard.run(appendNumber('agent', 0, signed('group')), appendNumber('agent', 1, signed('group')))
    const { no } = shard.store.agents.find('agent') ?? { no: -1 }
    expect(recordBySeq(shard.environment, no, 0)?.signature).toHaveLength(64)
  })
})

describe('the clock of a shard', () => {
  it('never goes back, even if the clock of the machine does', async () => {
    const first = replyOf(shard.ask(appendNumber('agent', 0)))
    shard.nowMs -= 30_000
    const second = replyOf(shard.ask(appendNumber('agent', 1)))
    expect(second.timestamp_hlc > first.timestamp_hlc).toBe(true)
    expect(msOf(second)).toBe(msOf(first))
    await shard.reopen()
    const third = replyOf(shard.ask(appendNumber('agent', 2)))
    expect(third.timestamp_hlc > second.timestamp_hlc).toBe(true)
  })

  it('refuses writes with clock_skew if it is more than 60 s behind, and accepts them again later', async () => {
    replyOf(shard.ask(appendNumber('agent', 0)))
    const head = headOf('agent')
    shard.nowMs -= limits.clockAheadMsMax + 1
    expect(codeOf(shard.ask(appendNumber('agent', 1)))).toBe('clock_skew')
    expect(codeOf(shard.ask(appendNumber('unborn', 1)))).toBe('clock_skew')
    expect(headOf('agent')).toEqual(head)
    await shard.reopen()
    expect(codeOf(shard.ask(appendNumber('agent', 1)))).toBe('clock_skew')
    shard.nowMs += 1
    expect(replyOf(shard.ask(appendNumber('agent', 1))).seq).toBe(2)
    expect(codeOf(shard.ask({ kind: 'agentHead', agent: 'unborn' }))).toBe('agent_not_found')
    // The number that was reserved for the agent was released.
    replyOf(shard.ask(appendNumber('unborn', 1)))
    expect(shard.store.agents.find('unborn')?.no).toBe(1)
  })

  // Regression: the records before the one that the clock refuses were committed, although the batch was
  // answered with 503.
  it('writes nothing of an atomic batch that it cannot write completely', () => {
    const records = Array.from({ length: 1_000 }, () => ({ data: {} }))
    const batch: Command = {
      kind: 'batchAppend',
      agent: 'agent',
      emerge: true,
      body: Buffer.from(JSON.stringify({ records })),
      options: signed('group'),
    }
    for (let count = 0; count < 65; count++) replyOf(shard.ask(batch))
    const head = headOf('agent')
    // The remaining readings of this counter are within the bound, the next millisecond is not.
    shard.nowMs -= limits.clockAheadMsMax
    expect(codeOf(shard.ask(batch))).toBe('clock_skew')
    expect(headOf('agent')).toEqual(head)
  })
})

describe('an Idempotency-Key', () => {
  it('is stored for a day, also after restarts, and can then be used for a new write', async () => {
    const first = replyOf(shard.ask(appendNumber('agent', 1, keyed('day'))))
    shard.nowMs += limits.idempotencyHours * HOUR_MS - 1
    await shard.reopen()
    const again = shard.ask(appendNumber('agent', 1, keyed('day')))
    expect(again).toMatchObject({ replayed: true })
    expect(replyOf(again)).toEqual(first)
    shard.nowMs += 1
    expect(replyOf(shard.ask(appendNumber('agent', 2, keyed('day')))).seq).toBe(2)
    expect(replyOf(shard.ask(appendNumber('agent', 2, keyed('day')))).seq).toBe(2)
  })

  it('confirms no guess of a body from the commit on that erases it, also over restarts', async () => {
    const zone = 'free' as const
    shard.ask({ kind: 'agentCreate', agent: 'agent', zone, options: {} })
    const first = replyOf(shard.ask(appendNumber('agent', 1, keyed('key'))))
    const erase: Command = {
      kind: 'recordMutate',
      agent: 'agent',
      action: 'erase',
      hash: first.content_hash,
      principal: 'root',
      options: {},
    }
    const other = appendNumber('agent', 2, keyed('key'))
    const [before, , after] = shard.run(other, erase, other)
    expect(codeOf(before)).toBe('idempotency_key_reused')
    expect([replyOf(after), after]).toMatchObject([first, { replayed: true }])
    await shard.reopen()
    for (const n of [1, 2, 3])
      expect(replyOf(shard.ask(appendNumber('agent', n, keyed('key'))))).toEqual(first)
    expect(headOf('agent').seq).toBe(2)
  })

  it('is removed from the store some time after its day', () => {
    shard.run(...Array.from({ length: 50 }, (_none, n) => appendNumber('agent', n, keyed(`old-${n}`))))
    shard.nowMs += limits.idempotencyHours * HOUR_MS + 1
    shard.ask(appendNumber('agent', 0, keyed('new')))
    expect([...shard.environment.idempotency.getKeys({})]).toHaveLength(1)
    expect([...shard.environment.expiries.getKeys({})]).toHaveLength(1)
  })

  it('is stored for another day if it is used again after its day', () => {
    shard.ask(appendNumber('agent', 0, keyed('reused')))
    shard.nowMs += limits.idempotencyHours * HOUR_MS
    shard.ask(appendNumber('agent', 1, keyed('reused')))
    shard.nowMs += 1
    shard.ask(appendNumber('agent', 2, keyed('other')))
    expect(shard.ask(appendNumber('agent', 1, keyed('reused')))).toMatchObject({ replayed: true })
  })

  it('is not stored for a refused write', () => {
    const bad = { ...appendNumber('agent', 0, keyed('bad')), body: Buffer.from('[]') }
    expect(codeOf(shard.ask(bad))).toBe('validation_failed')
    expect(replyOf(shard.ask(appendNumber('agent', 0, keyed('bad')))).seq).toBe(1)
  })

  it('belongs to its caller', () => {
    const as = (caller: string) => appendNumber('agent', 0, { idempotency: { caller, key: 'same' } })
    expect([shard.ask(as('one')), shard.ask(as('two'))].map((outcome) => replyOf(outcome).seq)).toEqual([
      1, 2,
    ])
  })
})

describe('more agents than fit into the memory of a shard', () => {
  it('continue their strands, in one group and in several', async () => {
    const few = new TestShard(undefined, { openAgentsMax: 1_000 })
    const count = limits.commitRecordsMax + 500
    const all = (n: number) => Array.from({ length: count }, (_none, agent) => appendNumber(`a${agent}`, n))
    for (let n = 0; n < 2; n++) {
      const seqs = new Set(few.run(...all(n)).map((outcome) => replyOf(outcome).seq))
      expect([...seqs]).toEqual([n + 1])
    }
    await few.remove()
  })

  it('are evicted if they are not used, and continue their strands', async () => {
    const one = new TestShard()
    one.run(appendNumber('a', 0))
    const before = one.store.agents.find('a')
    one.store.agents.evictIdle()
    expect(one.store.agents.find('a')).toBe(before)
    one.store.agents.evictIdle()
    one.store.agents.evictIdle()
    expect(replyOf(one.run(appendNumber('a', 1))[0]).seq).toBe(2)
    expect(one.store.agents.find('a')).not.toBe(before)
    await one.remove()
  })

  it('are logged in the server log like those in memory', async () => {
    const few = new TestShard(undefined, { openAgentsMax: 2 })
    const names = ['a', 'b', 'c', 'd', 'e']
    few.run(...names.map((name) => appendNumber(name, 0)))
    const moved = few.ask({ kind: 'headsMoved', after: { ms: 0, counter: 0 } })
    if (moved.kind !== 'heads') throw new Error(`Expected heads, got ${moved.kind}`)
    const strands = names.map((name) => few.store.agents.find(name)?.strand)
    expect(moved.heads.map(({ strand }) => strand)).toEqual(expect.arrayContaining(strands))
    expect(new Set(strands).size).toBe(names.length)
    await few.remove()
  })
})

it('merges its indexes when no write has arrived for a while', () => {
  let nowMs = 0
  shard.steadyClock = () => nowMs
  shard.run(...Array.from({ length: 5_000 }, (_none, n) => appendNumber('agent', n)))
  expect([shard.needsStep, shard.store.needsStep]).toEqual([false, true])
  nowMs += limits.shardIdleMs - 1
  expect(shard.needsStep).toBe(false)
  nowMs += 1
  expect(shard.needsStep).toBe(true)
  shard.runBackgroundWork()
  expect(shard.needsStep).toBe(false)
})
