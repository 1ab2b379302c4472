import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Policy } from '../../src/auth/row-policy.js'
import type { RecordQuery } from '../../src/protocol/record-messages.js'
import type { Condition } from '../../src/strand/operators.js'
import { TestShard, replyOf, rowsOf } from '../support/shard/shard.js'

const own: Policy = { actions: ['read'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] }

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  replyOf(shard.ask({ kind: 'agentCreate', agent: 'staff', zone: 'free', options: {} }))
  shard.ask({ kind: 'policiesSet', agent: 'staff', policies: [own], principal: 'root', options: {} })
  for (let salary = 1; salary <= 20; salary++) append({ owner: 'usr_bob', salary })
})
afterEach(() => shard.remove())

function append(data: object): void {
  const body = Buffer.from(JSON.stringify({ data, type: 'payroll' }))
  replyOf(shard.ask({ kind: 'recordAppend', agent: 'staff', emerge: false, body, options: {} }))
}

/** A query of Ann that records every access to its conditions and types. */
function watchedQuery(): { query: RecordQuery; looks: string[] } {
  const looks: string[] = []
  const condition: Condition = { field: 'salary', op: 'eq', value: 7 }
  const seen = <T>(name: string, value: T): T => {
    looks.push(name)
    return value
  }
  const query: RecordQuery = {
    kind: 'recordQuery',
    agent: 'staff',
    order: 'asc',
    limit: 100,
    access: { claims: { sub: 'usr_ann', email: 'ann@example.org', app_metadata: {}, user_metadata: {} } },
    get where() {
      return seen('where', [condition])
    },
    get types() {
      return seen('types', ['payroll'])
    },
  }
  return { query, looks }
}

it('does not evaluate a query for records that row policies hide', () => {
  const { query, looks } = watchedQuery()
  expect(shard.ask(query)).toEqual({ kind: 'rows', rows: Buffer.alloc(0), count: 0 })
  // Regression: if a hidden record matched the first condition, the next ones were compared too, and the time
  // revealed it.
  expect(looks).toEqual([])
})

it('compares the records that row policies show', () => {
  append({ owner: 'usr_ann', salary: 6 })
  append({ owner: 'usr_ann', salary: 7 })
  const { query, looks } = watchedQuery()
  expect(rowsOf(shard.ask(query)).map(({ payload }) => payload)).toEqual([{ owner: 'usr_ann', salary: 7 }])
  expect(new Set(looks)).toEqual(new Set(['types', 'where']))
})
