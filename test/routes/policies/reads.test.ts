// @run through a standby
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { checkedCall, newAgent } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { type TestAnswer, type TestServer } from '../../support/server/server.js'
import { signUp, subjectOf } from '../../support/auth/users.js'

/* Row policies on all reads except exports and streams (docs/adr/0012-row-policies.md). */

let server: TestServer
let ann = ''
/** A user in team `red`. */
let rob = ''
let ofAnn = ''
let ofBob = ''
let deleted = ''
let inUnreadable = ''

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_GOVERNED_AUTO_APPROVE_SECS: '1' } })
  ann = await signUp(server, 'ann@example.org')
  rob = await signUp(server, 'rob@example.org', { app: { team: { colour: 'red', of: [1] }, level: 3 } })
  for (const agent of ['notes', 'bare', 'unreadable', 'claims']) await newAgent(server, agent)
  const conditions = [{ field: 'owner', op: 'eq', value: '$jwt.sub' }]
  await setPolicies('notes', [{ actions: ['read'], conditions }])
  await setPolicies('unreadable', [{ actions: ['write', 'delete'], conditions }])
  ofAnn = await write('notes', { owner: subjectOf(ann), n: 1 })
  ofBob = await write('notes', { owner: 'usr_bob', n: 2, code: 'x' })
  deleted = await write('notes', { owner: subjectOf(ann), n: 3 })
  await checkedCall(server, `DELETE /v1/agents/notes/records/${deleted}`)
  inUnreadable = await write('unreadable', { owner: subjectOf(ann), n: 4 })
})
afterAll(() => server.stop())

async function setPolicies(agent: string, policies: object[]): Promise<void> {
  expect((await checkedCall(server, `PUT /v1/agents/${agent}/policies`, { body: { policies } })).status).toBe(
    200,
  )
}

async function write(agent: string, data: object): Promise<string> {
  return (await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data } })).body.id
}

const as = (key: string, route: string, body?: object) =>
  checkedCall(server, route, body === undefined ? { key } : { key, body })

const query = (key: string, body: object, agent = 'notes') => as(key, `POST /v1/agents/${agent}/query`, body)

const numbersIn = (answer: TestAnswer): number[] => {
  expect(answer.status).toBe(200)
  return answer.body.records.map(({ payload }: { payload: { n: number } }) => payload.n)
}

/** A problem without members that differ between requests. */
const problemOf = ({ status, body }: TestAnswer) => ({ ...body, status, request_id: undefined })

describe('a record by its hash', () => {
  it('is shown if a policy shows it, deleted or not', async () => {
    const shown = await as(ann, `GET /v1/agents/notes/records/${ofAnn}`)
    expect([shown.status, shown.body.payload.n]).toEqual([200, 1])
    expect((await as(ann, `GET /v1/agents/notes/records/sha256:${deleted}`)).body.deleted).toBe(true)
  })

  it('is not found if no policy shows it', async () => {
    const none = '0'.repeat(64)
    const hidden = await as(ann, `GET /v1/agents/notes/records/${ofBob}`)
    const absent = await as(ann, `GET /v1/agents/notes/records/${none}`)
    expect([hidden.status, hidden.body.code]).toEqual([404, 'record_not_found'])
    expect(JSON.stringify(problemOf(hidden)).replaceAll(ofBob, none)).toBe(JSON.stringify(problemOf(absent)))
  })
})

describe('a search by the beginning of a hash', () => {
  it('finds only records that a policy shows', async () => {
    const found = await as(ann, `GET /v1/records/${ofAnn.slice(0, 8)}`)
    expect([found.status, found.body.records[0].agent]).toEqual([200, 'notes'])
    const none = '0'.repeat(64)
    const absent = await as(ann, `GET /v1/records/${none}`)
    for (const [key, hash] of [
      [ann, ofBob],
      [rob, ofAnn],
      [ann, inUnreadable],
    ] as const) {
      const hidden = await as(key, `GET /v1/records/${hash}`)
      expect([hidden.status, hidden.body.code]).toEqual([404, 'record_not_found'])
      expect(JSON.stringify(problemOf(hidden)).replaceAll(hash, none)).toBe(JSON.stringify(problemOf(absent)))
    }
  })
})

describe('a query', () => {
  it.each([
    ['latest', { type: 'latest' }],
    ['time_range', { type: 'time_range', from_ts: 0 }],
    ['time_range until now', { type: 'time_range', from_ts: 0, to_ts: 4_000_000_000_000 }],
    ['latest with where', { type: 'latest', where: [{ field: 'n', op: 'gt', value: 0 }] }],
    ['latest in order', { type: 'latest', order: 'asc' }],
  ])('leaves out hidden records: %s', async (_name, body) => {
    expect(numbersIn(await query(ann, body))).toEqual([1])
  })

  it('does not warn about hidden records', async () => {
    const body = { type: 'latest', where: [{ field: 'code', op: 'eq', value: 7 }] }
    expect((await query(ann, body)).body.warnings).toBeUndefined()
    expect((await checkedCall(server, 'POST /v1/agents/notes/query', { body })).body.warnings).toHaveLength(1)
  })

  it('shows the strand as it was, without hidden records', async () => {
    const { body: head } = await checkedCall(server, 'GET /v1/agents/notes/head')
    const before = await query(ann, { type: 'time_range', from_ts: 0, to_ts: head.timestamp_hlc })
    expect(numbersIn(before)).toEqual([1])
    const { body: view } = await checkedCall(server, `GET /v1/agents/notes/records/${deleted}`)
    const then = await query(ann, { type: 'time_range', from_ts: 0, to_ts: view.timestamp_hlc })
    expect(numbersIn(then)).toEqual([1, 3])
  })

  it('continues after pages with only hidden records', async () => {
    await newAgent(server, 'long')
    await setPolicies('long', [
      { actions: ['read'], conditions: [{ field: 'n', op: 'in', value: [0, 1_499] }] },
    ])
    const batch = (from: number) => ({
      records: Array.from({ length: 500 }, (_none, place) => ({ data: { n: from + place } })),
    })
    for (const from of [0, 500, 1_000]) {
      await checkedCall(server, 'POST /v1/agents/long/records/batch', { body: batch(from) })
    }
    const first = await query(ann, { type: 'time_range', limit: 1 }, 'long')
    expect(numbersIn(first)).toEqual([0])
    const second = await query(ann, { type: 'time_range', limit: 1, cursor: first.body.next_cursor }, 'long')
    expect(numbersIn(second)).toEqual([1_499])
  })

  it('finds by hash only records that a policy shows', async () => {
    expect(numbersIn(await query(ann, { type: 'hash', hash: ofAnn }))).toEqual([1])
    expect(numbersIn(await query(ann, { type: 'hash', hash: ofBob }))).toEqual([])
    expect(numbersIn(await query(ann, { type: 'hash', hash: '0'.repeat(64) }))).toEqual([])
  })

  // Regression: a policy on a field that they do not have showed all sign-ins with their addresses to every
  // user.
  it('shows records of the server only if a policy names their types', async () => {
    const conditions = [{ field: 'secret', op: 'exists', value: false }]
    const typesSeen = async (types?: string[]) => {
      const policies = [{ actions: ['read'], conditions, ...(types !== undefined && { types }) }]
      const path = '/v1/agents/default/policies'
      expect((await checkedCall(server, `PUT ${path}`, { body: { policies } })).status).toBe(202)
      await eventually(async () =>
        isDeepStrictEqual((await checkedCall(server, `GET ${path}`)).body.policies, policies),
      )
      const all = { type: 'time_range', from_ts: 0, types: ['sys/*', 'auth/*'], limit: 1_000 }
      const found = await query(ann, all, 'default')
      const exported = await as(ann, 'GET /v1/strand/export?agent=default')
      const lines = exported.text.trimEnd().split('\n').slice(1, -1)
      const shown = lines.map((line) => JSON.parse(line)).filter(({ body: text }) => text !== undefined)
      return {
        queried: new Set(found.body.records.map((record: { type: string }) => record.type)),
        exported: new Set(shown.map(({ h }) => /^type (.*)$/m.exec(h)?.[1])),
      }
    }
    expect(await typesSeen()).toEqual({ queried: new Set(), exported: new Set(['sys/genesis']) })
    const seen = await typesSeen(['auth/register'])
    expect(seen.queried).toEqual(new Set(['auth/register']))
    expect(seen.exported).toEqual(new Set(['sys/genesis', 'auth/register']))
  })
})

describe('the strand', () => {
  it('shows head, status, checkpoint and chain_head to users with a read policy', async () => {
    const { body: head } = await checkedCall(server, 'GET /v1/agents/notes/head')
    expect((await as(rob, 'GET /v1/agents/notes/head')).body).toEqual(head)
    expect((await query(rob, { type: 'chain_head' })).body).toEqual(head)
    expect((await as(rob, 'GET /v1/agents/notes/status')).body.chain_head).toBe(head.chain_head)
    const checkpoint = await as(rob, 'GET /v1/strand/checkpoint?agent=notes')
    expect(checkpoint.text.split('\n')[1]).toBe(String(head.seq + 1))
  })

  it('has proofs of records that a policy shows', async () => {
    const proof = await as(ann, `GET /v1/strand/proof?agent=notes&hash=${ofAnn}`)
    expect([proof.status, proof.body.hash]).toEqual([200, ofAnn])
    const hidden = await as(ann, `GET /v1/strand/proof?agent=notes&hash=${ofBob}`)
    expect([hidden.status, hidden.body.code]).toEqual([404, 'record_not_found'])
  })
})

describe.each(['bare', 'unreadable', 'absent'])('agent %s without a read policy', (agent) => {
  const words = 'No row policy of the agent allows this'
  it.each([
    ['a record', () => as(ann, `GET /v1/agents/${agent}/records/${ofAnn}`)],
    ['latest', () => query(ann, { type: 'latest' }, agent)],
    ['a time range', () => query(ann, { type: 'time_range' }, agent)],
    ['a hash', () => query(ann, { type: 'hash', hash: ofAnn }, agent)],
    ['the chain head', () => query(ann, { type: 'chain_head' }, agent)],
    ['the head', () => as(ann, `GET /v1/agents/${agent}/head`)],
    ['the status', () => as(ann, `GET /v1/agents/${agent}/status`)],
    ['a checkpoint', () => as(ann, `GET /v1/strand/checkpoint?agent=${agent}`)],
    ['a proof', () => as(ann, `GET /v1/strand/proof?agent=${agent}&hash=${ofAnn}`)],
    ['an export', () => as(ann, `GET /v1/strand/export?agent=${agent}`)],
    ['its stream', () => as(ann, `GET /v1/agents/${agent}/stream`)],
    ['its part of the global stream', () => as(ann, `GET /v1/stream?agents=notes,${agent}`)],
  ])('answers 403 to a user who asks for %s', async (_name, act) => {
    const { status, body } = await act()
    expect([status, body.code, body.detail]).toEqual([403, 'forbidden', words])
  })
})

it.each([
  ['GET /v1/agents/org::a/head'],
  ['GET /v1/agents/org::a/status'],
  [`GET /v1/agents/org::a/records/${'0'.repeat(64)}`],
  ['GET /v1/agents/org::a/stream'],
  ['GET /v1/stream?agents=notes,org::a'],
  ['GET /v1/strand/export?agent=org::a'],
  ['GET /v1/strand/checkpoint?agent=org::a'],
])('answers 403 to a user of the root namespace who asks for %s', async (route) => {
  const { status, body } = await as(ann, route)
  expect([status, body.code]).toEqual([403, 'forbidden'])
  expect(body.detail).toBe('This token is of another namespace than agent "org::a"')
})

it.each([
  ['GET /v1/agents', undefined],
  ['POST /v1/agents', { name: 'mine', zone: 'free' }],
  ['GET /v1/agents/notes/policies', undefined],
  ['PUT /v1/agents/notes/policies', { policies: [] }],
  ['GET /v1/admin/api-keys', undefined],
  ['POST /v1/admin/api-keys', { name: 'mine', scopes: ['admin:*'] }],
  ['DELETE /v1/admin/api-keys/key_0', undefined],
  ['GET /v1/stream', undefined],
])('answers 403 to a user who asks %s', async (route, body) => {
  const answer = await as(ann, route, body)
  expect([answer.status, answer.body.code]).toEqual([403, 'forbidden'])
})

describe('a policy on claims', () => {
  const rows = async (key: string, conditions: object[]) => {
    await setPolicies('claims', [{ actions: ['read'], conditions }])
    return numbersIn(await query(key, { type: 'latest', order: 'asc', types: ['record'] }, 'claims'))
  }
  const email = 'rob@example.org'

  beforeAll(async () => {
    await write('claims', { n: 1, team: { of: [1], colour: 'red' }, level: 3, email })
    await write('claims', { n: 2, team: { of: [1], colour: 'blue' }, level: '3', email: 'ROB@example.org' })
    await write('claims', { n: 3, level: 4, a: { b: [{ c: 'red' }] } })
    await write('claims', { n: 4, level: null })
  })

  it.each<[string, object[], number[]]>([
    ['objects, by their members', [{ field: 'team', op: 'eq', value: '$jwt.app_metadata.team' }], [1]],
    ['objects under ne', [{ field: 'team', op: 'ne', value: '$jwt.app_metadata.team' }], [2]],
    ['members of objects', [{ field: 'team.colour', op: 'eq', value: '$jwt.app_metadata.team.colour' }], [1]],
    ['places of lists', [{ field: 'a.b.0.c', op: 'eq', value: '$jwt.app_metadata.team.colour' }], [3]],
    ['numbers with numbers', [{ field: 'level', op: 'eq', value: '$jwt.app_metadata.level' }], [1]],
    ['numbers in order', [{ field: 'level', op: 'gte', value: '$jwt.app_metadata.level' }], [1, 3]],
    ['one type only under ne', [{ field: 'level', op: 'ne', value: '$jwt.app_metadata.level' }], [3]],
    ['e-mails as they are', [{ field: 'email', op: 'eq', value: '$jwt.email' }], [1]],
    ['items of lists', [{ field: 'level', op: 'in', value: ['$jwt.app_metadata.level', 4] }], [1, 3]],
    ['that a field is there', [{ field: 'team', op: 'exists', value: true }], [1, 2]],
    ['that a field is not there', [{ field: 'team', op: 'exists', value: false }], [3, 4]],
    ['null with null', [{ field: 'level', op: 'eq', value: null }], [4]],
    [
      'all conditions',
      [
        { field: 'level', op: 'exists', value: true },
        { field: 'team.colour', op: 'eq', value: 'blue' },
      ],
      [2],
    ],
    ['nothing: no condition', [], [1, 2, 3, 4]],
  ])('compares %s', async (_name, conditions, expected) => {
    expect(await rows(rob, conditions)).toEqual(expected)
  })

  it.each([
    ['eq', '$jwt.app_metadata.tenant'],
    ['ne', '$jwt.app_metadata.tenant'],
    ['in', '$jwt.app_metadata.tenant'],
    ['gte', '$jwt.app_metadata.level.deep'],
    ['ne', '$jwt.user_metadata.anything'],
    ['ne', '$jwt.app_metadata.constructor'],
    ['ne', '$jwt.app_metadata.toString.name'],
  ])('matches nothing under %s with a missing claim: %s', async (op, value) => {
    expect(await rows(rob, [{ field: 'level', op, value }])).toEqual([])
  })

  it('is sufficient next to one that does not match', async () => {
    await setPolicies('claims', [
      { actions: ['read'], conditions: [{ field: 'n', op: 'eq', value: '$jwt.app_metadata.tenant' }] },
      { actions: ['write', 'read'], conditions: [{ field: 'n', op: 'eq', value: 2 }] },
      { actions: ['write'], conditions: [] },
    ])
    expect(numbersIn(await query(rob, { type: 'latest' }, 'claims'))).toEqual([2])
  })

  it('follows the user_metadata that users write themselves, in the next token', async () => {
    const dan = await signUp(server, 'dan@example.org', { own: { level: 4 } })
    expect(await rows(dan, [{ field: 'level', op: 'eq', value: '$jwt.user_metadata.level' }])).toEqual([3])
  })
})

it('the server had nothing to log', () => {
  expect(server.stderr()).toBe('')
})
