import { afterEach, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { commitDurably } from '../../workers/store/environment.js'
import { idempotency } from '../../workers/store/tables/idempotency.js'
import { AuthShard } from '../support/shard/auth-shard.js'
import { appendNumber, keyed, replyOf, TestShard } from '../support/shard/shard.js'

/* What one command reads, however much there is. */

let shard: TestShard

afterEach(() => shard.remove())

/** Policies of about 50 KB. */
const largePolicies = Array.from({ length: 16 }, (_none, at) => ({
  actions: ['read' as const],
  conditions: [{ field: `member_${at}`, op: 'eq' as const, value: 'x'.repeat(3_000) }],
}))

function propose(agent: string): void {
  replyOf(shard.ask({ kind: 'agentCreate', agent, zone: 'governed', options: {} }))
  const policies = largePolicies
  replyOf(shard.ask({ kind: 'policiesSet', agent, policies, principal: 'root', options: {} }))
}

function namesOf(outcome: Outcome): Extract<Outcome, { kind: 'names' }> {
  if (outcome.kind !== 'names') throw new Error(`Expected names, got ${outcome.kind}`)
  return outcome
}

describe('a list of agents', () => {
  const list = (more: Partial<CommandOf<'agentList'>>) =>
    namesOf(shard.ask({ kind: 'agentList', prefix: '', after: '', limit: 10, ...more }))

  it('counts names with a prefix up to a limit, and all names exactly', async () => {
    shard = new TestShard()
    const most = limits.countedRowsMax
    commitDurably(shard.environment, () => {
      for (let no = 0; no < most + 3; no++) {
        const name = `p${String(no).padStart(5, '0')}`
        shard.environment.agents.put(Buffer.from(name), Buffer.from('{}'))
        shard.environment.names.put(Buffer.from([0, 0, no >> 8, no & 255]), Buffer.from(name))
      }
    })
    await shard.reopen()
    expect([list({}).total, list({ prefix: 'p' }).total]).toEqual([most + 3, most])
    expect([list({ prefix: 'p0999' }).total, list({ prefix: 'q' }).total]).toEqual([10, 0])
  })

  it('ends early where policies are large, and later pages have the others', () => {
    shard = new TestShard()
    const body = Buffer.alloc(limits.pageWorkBytesMax / 4, 120)
    commitDurably(shard.environment, () => {
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) shard.environment.agents.put(Buffer.from(name), body)
    })
    for (const more of [{}, { contains: '' }, { prefix: '' }]) {
      const names: string[] = []
      let pages = 0
      for (let after = ''; ; pages++) {
        const page = list({ ...more, after })
        names.push(...page.names)
        if (page.cut === undefined) break
        after = page.cut
      }
      expect([names.join(''), pages]).toEqual(['abcdef', 1])
    }
  })
})

it('the number of users follows registrations and deletions, in memory', async () => {
  const auth = new AuthShard()
  shard = auth
  const total = (prefix = '') => {
    const answer = auth.lookUp({ kind: 'users', prefix, after: '', limit: 1 })
    return answer.kind === 'users' ? answer.total : answer
  }
  expect(total()).toBe(0)
  for (const name of ['ada', 'bob', 'cy']) auth.register(`${name}@example.org`)
  expect([total(), total('b')]).toEqual([3, 1])
  auth.register('ada@example.org')
  auth.change({ kind: 'userDelete', email: 'bob@example.org' })
  auth.change({ kind: 'userDelete', email: 'unknown@example.org' })
  expect([total(), total('b')]).toEqual([2, 0])
  await shard.reopen()
  expect(total()).toBe(2)
})

it('expired answers are removed by their bytes, a few with each write', () => {
  shard = new TestShard()
  const table = () => shard.store.tables.of(idempotency)
  const body = 'x'.repeat(limits.scannedRowBytesMax / 4)
  const answers = Array.from({ length: 16 }, (_none, at) => {
    const outcome = () => ({ kind: 'reply' as const, status: 201, body })
    const key = Buffer.alloc(32, at)
    return {
      key,
      digest: 'd',
      content: undefined,
      placement: 0,
      seqs: undefined,
      outcome,
      storedOutcome: outcome,
    }
  })
  commitDurably(shard.environment, () => table().put(answers, shard.nowMs))
  const left = () => [...shard.environment.idempotency.getKeys()].filter((key) => key[0] === key[31]).length
  shard.nowMs += limits.idempotencyHours * 3_600_000 + 1
  const counts = Array.from({ length: 4 }, (_none, n) => {
    replyOf(shard.ask(appendNumber('agent', n, keyed(`later ${n}`))))
    return left()
  })
  expect(counts).toEqual([12, 8, 4, 0])
})

it('due proposals are ended by their bytes, a few with each sweep', () => {
  shard = new TestShard()
  const agents = 60
  for (let at = 0; at < agents; at++) propose(`governed-${at}`)
  shard.nowMs += 60_000
  const applied = () =>
    Array.from({ length: agents }, (_none, at) => shard.store.agents.find(`governed-${at}`)).filter(
      (agent) => agent !== undefined && agent.policies.length > 0,
    ).length
  const sweeps: [number, unknown][] = []
  for (let left = true; left;) {
    const swept = shard.ask({ kind: 'proposalsSweep', options: {} })
    left = swept.kind === 'swept' && swept.left
    sweeps.push([applied(), left])
  }
  expect(sweeps.length).toBeGreaterThanOrEqual(3)
  expect(sweeps[0]?.[0]).toBeLessThan(30)
  expect(sweeps.at(-1)).toEqual([agents, false])
})

it('a page of proposals ends by bytes, and later pages have the others', () => {
  shard = new TestShard()
  for (let at = 0; at < 60; at++) propose(`listed-${at}`)
  const pages: number[] = []
  for (let after: CommandOf<'proposalList'>['after']; ;) {
    const page = shard.ask({
      kind: 'proposalList',
      keys: true,
      limit: 1_000,
      ...(after !== undefined && { after }),
    })
    if (page.kind !== 'proposals') throw new Error(`Expected proposals, got ${page.kind}`)
    pages.push(page.rows.length)
    if (page.next === undefined) break
    after = page.next
  }
  expect(Math.max(...pages)).toBeLessThan(30)
  expect(pages.reduce((sum, rows) => sum + rows, 0)).toBe(60)
})
