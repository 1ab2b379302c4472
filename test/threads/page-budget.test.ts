import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Policy } from '../../src/auth/row-policy.js'
import type { Command, Outcome } from '../../src/protocol/messages.js'
import { TestShard, replyOf, rowsOf } from '../support/shard/shard.js'

const access = { claims: { sub: 'u', email: 'u@example.org', app_metadata: {}, user_metadata: {} } }

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  replyOf(shard.ask({ kind: 'agentCreate', agent: 'a', zone: 'free', options: {} }))
})
afterEach(() => shard.remove())

function append(...records: object[]): void {
  const body = Buffer.from(JSON.stringify({ records: records.map((data) => ({ data })) }))
  replyOf(shard.ask({ kind: 'batchAppend', agent: 'a', emerge: false, body, options: {} }))
}

/** Reads all pages. @returns the number of calls, and the numbers of the returned records */
function readAll(command: Extract<Command, { kind: 'recordQuery' }>): { calls: number; shown: number[] } {
  const shown: number[] = []
  let next: typeof command | undefined = command
  let calls = 0
  while (next !== undefined) {
    const outcome: Outcome = shard.ask(next)
    if (outcome.kind !== 'rows') throw new Error(JSON.stringify(outcome))
    shown.push(...rowsOf(outcome).map((row) => row.payload.n))
    next = outcome.cursor === undefined ? undefined : { ...command, cursor: outcome.cursor }
    calls++
  }
  return { calls, shown }
}

const all = { kind: 'recordQuery', agent: 'a', order: 'asc', limit: 10_000 } as const

it('ends a page at the limit of bytes read, even if no record was found', () => {
  const text = 'x'.repeat(200_000)
  for (let n = 0; n < 60; n += 20) append(...Array.from({ length: 20 }, (_, more) => ({ n: n + more, text })))
  const { calls, shown } = readAll({ ...all, types: ['nothing'] })
  expect(shown).toEqual([])
  expect(calls).toBe(2)
})

it('ends a page at the limit of bytes that row policies or conditions compared', () => {
  append(...Array.from({ length: 200 }, (_, n) => ({ n })))
  // Each record is compared with each condition; only the last policy matches.
  const many = (value: unknown): Policy => ({
    actions: ['read'],
    conditions: [
      ...Array.from({ length: 31 }, () => ({ field: 'n', op: 'gte' as const, value: 0 })),
      { field: 'n', op: 'gte', value },
    ],
  })
  const policies = [...Array.from({ length: 49 }, () => many(1_000)), many(190)]
  shard.ask({ kind: 'policiesSet', agent: 'a', policies, principal: 'root', options: {} })
  const shown = Array.from({ length: 10 }, (_, n) => 190 + n)
  expect(readAll({ ...all, access })).toEqual({ calls: 3, shown })
  const value = [1, 'y'.repeat(60_000)]
  append(...Array.from({ length: 200 }, (_, n) => ({ n: 1_000 + n, text: 'x'.repeat(30_000) })))
  const { calls } = readAll({ ...all, where: [{ field: 'text', op: 'in', value }] })
  expect(calls).toBe(3)
})

it('ends pages of streams at the limit of bytes read', () => {
  const body = Buffer.from(JSON.stringify({ data: { text: 'x'.repeat(200_000) } }))
  for (let n = 0; n < 60; n++) {
    shard.ask({ kind: 'recordAppend', agent: n === 59 ? 'a' : 'b', emerge: true, body, options: {} })
  }
  const after = { ms: 0, counter: 0 }
  const first = shard.ask({ kind: 'logPage', after, limit: 256, agents: ['a'] })
  expect(first).toMatchObject({ kind: 'page', events: [], end: false })
  if (first.kind !== 'page') throw new Error(first.kind)
  const second = shard.ask({ kind: 'logPage', after: first.reached, limit: 256, agents: ['a'] })
  expect(second).toMatchObject({ kind: 'page', events: [{ agent: 'a' }], end: true })
})
