import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerMany } from '../support/auth/accounts.js'
import { checkedCall, newAgent, scopedKey } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { openStream, type TestEvent } from '../support/http/events.js'
import { runSeed } from '../support/run-seed.js'
import {
  changes,
  changedText,
  expectNoFailure,
  fuzz,
  headerText,
  oddText,
} from '../support/faults/fuzzing.js'
import { fill } from '../support/shard/imports.js'
import type { TestAnswer, TestServer } from '../support/server/server.js'

/*
 * Cursors that the server did not issue, or issued for another list: they are refused, or return existing
 * rows in order on a finite number of pages.
 */

const seed = runSeed('fuzz-cursors')
const RECORDS = 40

let server: TestServer

/** A route that answers in pages. */
interface Paged {
  /** The call for a page of `limit` rows. */
  page(limit: number, cursor: string | undefined): Promise<TestAnswer>
  /** Identifiers of the rows, in order. */
  rowsOf(answer: TestAnswer): string[]
}

const rowIds = (member: string, id: string) => (answer: TestAnswer) =>
  answer.body[member].map((row: Record<string, unknown>) => String(row[id]))

function paged(path: string, rowsOf: Paged['rowsOf']): Paged {
  return {
    rowsOf,
    page: (limit, cursor) => {
      const parameter = cursor === undefined ? '' : `&${new URLSearchParams({ cursor })}`
      return checkedCall(server, `GET ${path}${path.includes('?') ? '&' : '?'}limit=${limit}${parameter}`)
    },
  }
}

function queried(body: Record<string, unknown>): Paged {
  return {
    rowsOf: rowIds('records', 'record_id'),
    page: (limit, cursor) =>
      checkedCall(server, 'POST /v1/agents/paged/query', {
        body: { ...body, limit, ...(cursor !== undefined && { cursor }) },
      }),
  }
}

const routes: [name: string, Paged][] = [
  ['agents', paged('/v1/agents', ({ body }) => body.agents)],
  ['agents of a prefix', paged('/v1/agents?prefix=p', ({ body }) => body.agents)],
  ['newest records', queried({ type: 'latest' })],
  ['oldest records', queried({ type: 'latest', order: 'asc', types: ['*'] })],
  ['records of some time', queried({ type: 'time_range', from_ts: 0, to_ts: '2100-01-01T00:00:00Z' })],
  ['records that match', queried({ type: 'latest', where: [{ field: 'n', op: 'gt', value: 5 }] })],
  ['as of', paged('/v1/strand/as-of?agent=paged&ts=2100-01-01T00:00:00Z', rowIds('records', 'record_id'))],
  ['proposals', paged('/v1/proposals', rowIds('proposals', 'proposal_id'))],
  ['proposals of an agent', paged('/v1/proposals?agent=guarded', rowIds('proposals', 'proposal_id'))],
  ['edges out', paged('/v1/graph/edges/paged?direction=out', edgeIds)],
  ['edges in', paged('/v1/graph/edges/guarded?direction=in', edgeIds)],
  ['organisms', paged('/v1/organisms', rowIds('organisms', 'organism_id'))],
  ['users', paged('/v1/auth/users', rowIds('users', 'email'))],
]

function edgeIds({ body }: TestAnswer): string[] {
  return body.edges.map(({ src, edge_type, dst }: Record<string, string>) => `${src} ${edge_type} ${dst}`)
}

/** All rows of each route. */
const whole = new Map<string, string[]>()
/** Cursors that the server issued, of all routes and by route. */
const issued: string[] = []
const issuedBy = new Map<Paged, string[]>()

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2' } })
  for (const agent of ['paged', 'paper', 'pay']) await newAgent(server, agent)
  await newAgent(server, 'guarded', 'protected')
  const hashes = await fill(server, 'guarded', { from: 0, count: 6 })
  const { key } = await scopedKey(server, ['records:delete'])
  for (const hash of hashes) await checkedCall(server, `DELETE /v1/agents/guarded/records/${hash}`, { key })
  await fill(server, 'paged', { from: 0, count: RECORDS })
  for (const [src, edge_type, dst] of [
    ['paged', 'knows', 'guarded'],
    ['paged', 'feeds', 'guarded'],
    ['paged', 'feeds', 'default'],
    ['default', 'feeds', 'guarded'],
    ['guarded', 'feeds', 'guarded'],
  ]) {
    await checkedCall(server, 'POST /v1/graph/edges', { body: { src, dst, edge_type } })
  }
  for (const id of ['acme', 'beta', 'gamma'])
    await checkedCall(server, 'POST /v1/organisms', { body: { organism_id: id, name: id } })
  await registerMany(server, ['a@example.org', 'b@example.org', 'c@example.org', 'dé@example.org'])
  for (const [name, route] of routes) whole.set(name, await allPages(name, route, 1))
})
afterAll(() => server.stop())

/** The rows of all pages of `limit` rows. Stores the cursors. */
async function allPages(name: string, route: Paged, limit: number): Promise<string[]> {
  const rows: string[] = []
  let cursor: string | undefined
  do {
    const answer = await route.page(limit, cursor)
    expect(answer.status, name).toBe(200)
    rows.push(...route.rowsOf(answer))
    cursor = answer.body.next_cursor ?? undefined
    if (cursor !== undefined) {
      issued.push(cursor)
      issuedBy.set(route, [...(issuedBy.get(route) ?? []), cursor])
    }
  } while (cursor !== undefined)
  expect(rows.length, name).toBeGreaterThan(1)
  expect(new Set(rows).size, name).toBe(rows.length)
  return rows
}

/** Expects that rows are some of all rows, in the same order. */
function expectInOrder(rows: readonly string[], all: readonly string[]): void {
  const indexes = rows.map((row) => all.indexOf(row))
  expect(indexes).not.toContain(-1)
  expect(indexes).toEqual([...new Set(indexes)].toSorted((left, right) => left - right))
}

/** Random cursors in the encoding of the server. */
const packed = fc
  .array(
    fc.oneof(
      fc.nat(50),
      fc.integer(),
      fc.double(),
      fc.constantFrom(2 ** 48, 2 ** 53, -1, 1e300),
      oddText,
      fc.constantFrom('paged', 'feeds', 'guarded', 'acme', 'b@example.org'),
      fc.constant(null),
    ),
    { maxLength: 4 },
  )
  .map((values) => Buffer.from(JSON.stringify(values)).toString('base64url'))

/** A cursor that the server issued, unchanged or changed. */
const fromIssued = fc
  .tuple(fc.nat(), fc.option(changes), fc.boolean())
  .map(([index, by, inside]) => ({ index, by, inside }))

function cursorOf(
  drawn: string | { index: number; by: Parameters<typeof changedText>[1] | null; inside: boolean },
): string {
  if (typeof drawn === 'string') return drawn
  const cursor = issued[drawn.index % issued.length] ?? ''
  if (drawn.by === null) return cursor
  if (!drawn.inside) return changedText(cursor, drawn.by)
  const text = changedText(Buffer.from(cursor, 'base64url').toString(), drawn.by)
  return Buffer.from(text, 'latin1').toString('base64url')
}

const cursors = fc.oneof(packed, fromIssued, oddText)

/** Numbers that the server never puts into a cursor. */
const invalidNumbers = [-1, -2, -(2 ** 32), -(2 ** 53), 0.5, -0.5, 2 ** 53, 1e300]

/** Cursors in which one number is replaced by an invalid one. */
function invalidCursors(cursor: string): string[] {
  const members = membersOf(cursor)
  return members.flatMap((member, index) =>
    typeof member === 'number'
      ? invalidNumbers.map((invalid) =>
          Buffer.from(JSON.stringify(members.with(index, invalid))).toString('base64url'),
        )
      : [],
  )
}

function membersOf(cursor: string): unknown[] {
  const members: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  if (!Array.isArray(members)) throw new Error(`Expected a cursor of members, got ${cursor}`)
  return members
}

describe('a cursor of a page', () => {
  it.each(routes)('is refused, or returns existing rows: %s', async (name, route) => {
    const all = whole.get(name) ?? []
    const draw = fc.tuple(cursors, fc.integer({ min: 1, max: 60 }))
    await fuzz({ seed, runs: 10, draw }, async ([drawn, limit]) => {
      let cursor: string | undefined = cursorOf(drawn)
      const rows: string[] = []
      for (let pages = 0; cursor !== undefined; pages++) {
        const answer = await route.page(limit, cursor)
        expectNoFailure(answer)
        if (pages === 0 && answer.status >= 400) {
          expect(answer.body.code).toBe('validation_failed')
          return
        }
        expect(answer.status).toBe(200)
        rows.push(...route.rowsOf(answer))
        cursor = answer.body.next_cursor ?? undefined
        expect(pages).toBeLessThan(all.length + 4)
      }
      expectInOrder(rows, all)
    })
  })

  it.each(routes)('is refused when it contains a number that no row has: %s', async (_name, route) => {
    const cursor = issuedBy.get(route)?.at(0)
    if (cursor === undefined) throw new Error('Expected a second page')
    for (const invalid of invalidCursors(cursor)) {
      const { status, body } = await route.page(10, invalid)
      expect([invalid, status, body.code]).toEqual([invalid, 400, 'validation_failed'])
    }
  })
})

describe('a cursor of a stream', () => {
  const clock = fc
    .tuple(
      fc.constantFrom('000000000000', 'ffffffffffff', '0199c5b8f2a4'),
      fc.constantFrom('0000', 'ffff'),
      fc.constantFrom('', `-${'0'.repeat(16)}`),
    )
    .map(([ms, counter, tie]) => `${ms}-${counter}${tie}`)
  const places = fc
    .array(fc.array(clock, { minLength: 1, maxLength: 18 }), { minLength: 1, maxLength: 18 })
    .map((lists) => lists.map((list) => list.join('.')).join('~'))
  const ids = fc.oneof(
    fc.nat(60).map(String),
    fc.constantFrom('-1', '1.0', '0x1', '281474976710655', '281474976710656', '999999999999999', '00000000'),
    places,
    fc.tuple(places, changes).map(([text, by]) => changedText(text, by)),
    oddText,
  )
  const moments = fc.oneof(
    clock,
    fc.constantFrom(
      '0',
      '-1',
      '2026-01-01T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '+275760-09-13T00:00:00Z',
      '1e12',
      '8640000000000001',
    ),
    fc
      .date({ noInvalidDate: false })
      .map((date) => (Number.isNaN(date.valueOf()) ? 'NaN' : date.toISOString())),
    oddText,
  )
  const streams = ['/v1/agents/paged/stream', '/v1/stream', '/v1/stream?agents=paged,guarded']

  it('is refused, or replays existing records, each once and in order', async () => {
    const draw = fc.record({
      path: fc.constantFrom(...streams),
      lastEventId: fc.option(ids),
      inQuery: fc.boolean(),
      since: fc.option(moments),
    })
    const examples = streams.flatMap((path) => [
      { path, lastEventId: null, inQuery: false, since: '0' },
      { path, lastEventId: '0', inQuery: false, since: null },
    ])
    let replayed = 0
    await fuzz({ seed, runs: 15, draw, examples }, async (drawn) => {
      const events = await replay(drawn)
      if (events === undefined) return
      replayed += events.length
      const bySeq = new Map<string, number[]>()
      for (const { agent, seq } of events) bySeq.set(agent, [...(bySeq.get(agent) ?? []), seq])
      for (const seqs of bySeq.values()) {
        expect(seqs).toEqual([...new Set(seqs)].toSorted((left, right) => left - right))
      }
    })
    // By the examples: three streams replay all records by `since`, and the first by the cursor 0 too.
    expect(replayed).toBeGreaterThanOrEqual((streams.length + 1) * RECORDS)
  })
})

/** How to open a stream. */
interface Opening {
  path: string
  lastEventId: string | null
  /** Whether the cursor is in the query instead of the header. */
  inQuery: boolean
  since: string | null
}

/** The records of a stream until it has caught up; undefined if it is refused. */
async function replay({
  path,
  lastEventId,
  inQuery,
  since,
}: Opening): Promise<TestEvent['data'][] | undefined> {
  const query = new URLSearchParams()
  if (since !== null) query.set('since', since)
  if (lastEventId !== null && inQuery) query.set('last_event_id', lastEventId)
  const headers = { 'last-event-id': inQuery ? '' : headerText(lastEventId ?? '') }
  try {
    const stream = await openStream(server, `${path}${path.includes('?') ? '&' : '?'}${query}`, { headers })
    await stream.until((events) => events.some(({ event }) => event === 'caught_up'))
    stream.close()
    return stream.events.filter(({ event }) => event === 'record').map(({ data }) => data)
  } catch (error) {
    // A header that is not visible ASCII is refused before its text is read.
    const codes = inQuery ? 'validation_failed' : 'validation_failed|malformed_request'
    expect(String(error)).toMatch(new RegExp(`^Error: 400 .*"code":"(${codes})"`))
    return undefined
  }
}
