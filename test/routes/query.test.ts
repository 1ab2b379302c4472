import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { queryRoutes } from '../../src/front/routes/query.js'
import { formatHlc, parseHlc } from '../../src/strand/hlc.js'
import {
  checkedCall,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { startServer, type TestServer } from '../support/server/server.js'

let server: TestServer

interface Written {
  id: string
  seq: number
  timestamp_hlc: string
}

const written: Written[] = []

beforeAll(async () => {
  server = await startServer()
  await newAgent(server, 'a')
  for (let n = 0; n < 30; n++) {
    const type = n % 3 === 0 ? 'reading/temp' : 'record'
    const data = { n, even: n % 2 === 0, place: { room: `r${n % 5}` }, tags: ['x', n], text: String(n) }
    written.push((await checkedCall(server, 'POST /v1/agents/a/records', { body: { data, type } })).body)
  }
})
afterAll(() => server.stop())

const query = (body: unknown, agent = 'a') => checkedCall(server, `POST /v1/agents/${agent}/query`, { body })

async function numbers(body: object, agent = 'a'): Promise<number[]> {
  const answer = await query(body, agent)
  expect(answer.status, answer.text).toBe(200)
  return answer.body.records.map((record: { payload: { n: number } }) => record.payload.n)
}

const upTo = (count: number) => Array.from({ length: count }, (_none, n) => n)
const newest = (count: number) => upTo(30).reverse().slice(0, count)

describe('latest', () => {
  it('returns the last 20, newest first, or the requested number and order', async () => {
    expect(await numbers({ type: 'latest' })).toEqual(newest(20))
    expect(await numbers({ type: 'latest', limit: 3 })).toEqual(newest(3))
    expect(await numbers({ type: 'latest', limit: 1_000 })).toEqual(newest(30))
    expect(await numbers({ type: 'latest', limit: 2, order: 'asc' })).toEqual([0, 1])
  })

  it('leaves out records of the server, unless types include them', async () => {
    const types = async (wanted?: string[]) => {
      const { body } = await query({ type: 'latest', limit: 1_000, ...(wanted ? { types: wanted } : {}) })
      return new Set(body.records.map((record: { type: string }) => record.type))
    }
    expect(await types()).toEqual(new Set(['record', 'reading/temp']))
    expect(await types(['sys/genesis'])).toEqual(new Set(['sys/genesis']))
    expect(await types(['sys/*', 'reading/*'])).toEqual(new Set(['sys/genesis', 'reading/temp']))
    expect(await types(['*'])).toEqual(new Set(['sys/genesis', 'record', 'reading/temp']))
    expect(await types(['nothing'])).toEqual(new Set())
  })
})

describe('where', () => {
  const where = (...conditions: [string, string, unknown][]) =>
    numbers({
      type: 'time_range',
      limit: 1_000,
      where: conditions.map(([field, op, value]) => ({ field, op, value })),
    })

  it('compares within one JSON type', async () => {
    expect(await where(['n', 'eq', 7])).toEqual([7])
    expect(await where(['n', 'eq', '7'])).toEqual([])
    expect(await where(['n', 'lt', 3])).toEqual([0, 1, 2])
    expect(await where(['n', 'lte', 2])).toEqual([0, 1, 2])
    expect(await where(['n', 'gt', 27])).toEqual([28, 29])
    expect(await where(['n', 'gte', '27'])).toEqual([])
    expect(await where(['n', 'in', [3, 5, '7']])).toEqual([3, 5])
    expect(await where(['n', 'in', []])).toEqual([])
    expect((await where(['even', 'ne', true])).length).toBe(15)
    expect(await where(['even', 'ne', 1])).toEqual([])
  })

  it('follows dotted paths, combines all conditions, and matches no missing field', async () => {
    expect(await where(['place.room', 'eq', 'r3'], ['n', 'gt', 20])).toEqual([23, 28])
    expect(await where(['place', 'eq', { room: 'r0' }], ['n', 'lt', 6])).toEqual([0, 5])
    expect(await where(['tags.1', 'eq', 4])).toEqual([4])
    for (const field of [
      'missing',
      'place.missing',
      '__proto__',
      'constructor',
      'tags.length',
      'text.length',
    ]) {
      expect(await where([field, 'ne', 'x'])).toEqual([])
      expect(await where([field, 'exists', true])).toEqual([])
    }
    expect((await where(['missing', 'exists', false])).length).toBe(30)
    expect((await where()).length).toBe(30)
  })

  it('follows JSON Pointers, and refuses other paths', async () => {
    const agent = await newAgent(server, 'pointers')
    const labels = { 'app.kubernetes.io/name': 'web', 'a~b': 1 }
    const data = { n: 1, labels, '': { x: [5] } }
    await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data } })
    const found = (field: string, value: unknown) =>
      numbers({ type: 'latest', where: [{ field, op: 'eq', value }] }, agent)
    expect(await found('/labels/app.kubernetes.io~1name', 'web')).toEqual([1])
    expect(await found('/labels/a~0b', 1)).toEqual([1])
    expect(await found('//x/0', 5)).toEqual([1])
    expect(await found('/labels/missing', 'web')).toEqual([])
    for (const field of ['/a~b', '/~', '.', 'a.', '.a', 'a..b']) {
      const where = [
        { field: 'n', op: 'eq', value: 1 },
        { field, op: 'exists', value: false },
      ]
      const { status, body } = await query({ type: 'latest', where }, agent)
      expect([field, status, body.errors?.[0].pointer]).toEqual([field, 400, '/where/1/field'])
    }
  })

  it('warns only if it compares a number with text, or text with a number', async () => {
    const warnings = async (conditions: [string, string, unknown][], agent = 'a') => {
      const where = conditions.map(([field, op, value]) => ({ field, op, value }))
      const { status, body } = await query({ type: 'time_range', limit: 1_000, where }, agent)
      expect(status).toBe(200)
      return body.warnings
    }
    expect(await warnings([['n', 'gte', '27']])).toEqual([
      '/where/0 compares n with text, but some records have a number there, which never matches',
    ])
    expect(
      await warnings([
        ['even', 'eq', true],
        ['/text', 'in', [1, 2]],
      ]),
    ).toEqual([
      '/where/1 compares /text with a number, but some records have text there, which never matches',
    ])
    const none = [
      ['n', 'eq', 7],
      ['n', 'eq', true],
      ['missing', 'eq', 7],
      ['tags', 'eq', 7],
    ] as const
    for (const condition of none) expect(await warnings([[...condition]])).toBeUndefined()
    const agent = await newAgent(server, 'gone')
    const path = `POST /v1/agents/${agent}/records`
    const { id } = (await checkedCall(server, path, { body: { data: { n: '7' } } })).body
    expect(await warnings([['n', 'eq', 7]], agent)).toHaveLength(1)
    await checkedCall(server, `DELETE /v1/agents/${agent}/records/${id}`)
    expect(await warnings([['n', 'eq', 7]], agent)).toBeUndefined()
    await checkedCall(server, path, { body: { data: { n: 7 } } })
    expect(await warnings([['n', 'eq', 7]], agent)).toBeUndefined()
  })

  it('has at most 32 conditions', async () => {
    const condition = { field: 'n', op: 'gte', value: 0 }
    const many = (count: number) => ({
      type: 'latest',
      where: Array.from({ length: count }, () => condition),
    })
    expect((await query(many(32))).status).toBe(200)
    expect((await query(many(33))).status).toBe(400)
  })
})

// Regression: such conditions were accepted, and found all records or none.
describe('an operator and a value that have no meaning together', () => {
  const values = [null, true, 0, 1, '', 'true', [], [true], {}, { a: 1 }]
  const isText = (value: unknown) => typeof value === 'string'
  const hasOrder = (value: unknown) => isText(value) || typeof value === 'number'
  it.each([
    ['eq', () => true],
    ['ne', () => true],
    ['in', (value: unknown) => Array.isArray(value)],
    ['exists', (value: unknown) => typeof value === 'boolean'],
    ['lt', hasOrder],
    ['lte', hasOrder],
    ['gt', hasOrder],
    ['gte', hasOrder],
  ] as const)('are refused in queries and in policies alike: %s', async (op, hasMeaning) => {
    await newAgent(server, `meaning-${op}`)
    for (const value of values) {
      const conditions = [
        { field: 'n', op: 'eq', value: 1 },
        { field: 'n', op, value },
      ]
      const put = { body: { policies: [{ actions: ['read'], conditions }] } }
      const answers = [
        await query({ type: 'latest', where: conditions }),
        await query({ type: 'time_range', where: conditions }),
        await checkedCall(server, `PUT /v1/agents/meaning-${op}/policies`, put),
      ]
      const outcomes = answers.map(({ status, body }) => [status, body.errors?.[0].pointer])
      const expected = ['/where/1/value', '/where/1/value', '/policies/0/conditions/1/value'].map((pointer) =>
        hasMeaning(value) ? [200, undefined] : [400, pointer],
      )
      expect([value, ...outcomes]).toEqual([value, ...expected])
    }
  })
})

describe('where on parts of texts', () => {
  const found = (...where: object[]) => numbers({ type: 'time_range', where })

  it('finds parts, beginnings and items of lists, with and without case', async () => {
    expect(await found({ field: 'place.room', op: 'contains', value: '4' })).toEqual([4, 9, 14, 19, 24, 29])
    expect(await found({ field: 'text', op: 'starts_with', value: '2' })).toHaveLength(11)
    expect(await found({ field: '/tags', op: 'contains', value: 7 })).toEqual([7])
    expect(await found({ field: '/tags', op: 'contains', value: 'X' })).toEqual([])
    const upper = { field: '/tags', op: 'contains', value: 'X', ci: true }
    expect(await found(upper, { field: 'place.room', op: 'in', value: ['R3'], ci: true })).toHaveLength(6)
  })

  it('warns of a number that is searched for in texts', async () => {
    const answer = await query({ type: 'latest', where: [{ field: 'text', op: 'contains', value: 2 }] })
    expect(answer.body.records).toEqual([])
    expect(answer.body.warnings).toEqual([expect.stringContaining('/where/0 compares text with a number')])
  })

  it.each([
    { op: 'contains', value: 'x'.repeat(251) },
    { op: 'contains', value: {} },
    { op: 'starts_with', value: 1 },
    { op: 'gt', value: 'a', ci: true },
    { op: 'eq', value: 1, ci: true },
  ])('is refused without a meaning: %o', async (compared) => {
    const refused = await query({ type: 'latest', where: [{ field: 'text', ...compared }] })
    expect([refused.status, refused.body.errors[0].pointer]).toEqual([400, '/where/0/value'])
  })

  it.each([
    { op: 'contains', value: 'x' },
    { op: 'starts_with', value: 'x' },
    { op: 'eq', value: 'x', ci: true },
    { op: 'eq', value: 'x', ci: false },
  ])('is refused in policies: %o', async (compared) => {
    const policies = [{ actions: ['read'], conditions: [{ field: 'text', ...compared }] }]
    expect((await checkedCall(server, 'PUT /v1/agents/a/policies', { body: { policies } })).status).toBe(400)
    expect((await checkedCall(server, 'GET /v1/agents/a/policies')).body.policies).toEqual([])
  })
})

describe('where with in', () => {
  it('has at most 1,000 items', async () => {
    const items = (length: number) => Array.from({ length }, (_, n) => n + 29)
    const where = (length: number) => [
      { field: 'n', op: 'exists', value: true },
      { field: 'n', op: 'in', value: items(length) },
    ]
    expect(await numbers({ type: 'latest', where: where(1_000) })).toEqual([29])
    const refused = await query({ type: 'latest', where: where(1_001) })
    expect([refused.status, refused.body.errors[0].pointer]).toEqual([400, '/where/1/value'])
  })
})

describe('time_range', () => {
  const at = (n: number) => written[n]?.timestamp_hlc ?? ''
  const msAt = (n: number) => parseHlc(at(n))?.ms ?? 0

  it('accepts HLCs, milliseconds and ISO 8601, with both ends inclusive', async () => {
    const range = { type: 'time_range', limit: 1_000 }
    expect(await numbers({ ...range, from_ts: 0 })).toEqual(upTo(30))
    expect(await numbers({ ...range })).toEqual(upTo(30))
    expect(await numbers({ ...range, from_ts: at(10), to_ts: at(12) })).toEqual([10, 11, 12])
    const byMs = await numbers({ ...range, from_ts: msAt(10), to_ts: msAt(20) })
    const expected = upTo(30).filter((n) => msAt(n) >= msAt(10) && msAt(n) <= msAt(20))
    expect(byMs).toEqual(expected)
    const iso = (ms: number) => new Date(ms).toISOString()
    expect(await numbers({ ...range, from_ts: iso(msAt(10)), to_ts: iso(msAt(20)) })).toEqual(expected)
    expect(await numbers({ ...range, from_ts: at(12), to_ts: at(10) })).toEqual([])
    expect(await numbers({ ...range, to_ts: 0 })).toEqual([])
    expect(await numbers({ ...range, from_ts: 2 ** 48 - 1 })).toEqual([])
    expect(await numbers({ ...range, to_ts: 'ffffffffffff-ffff' })).toEqual(upTo(30))
    expect(await numbers({ ...range, from_ts: at(28), order: 'desc' })).toEqual([29, 28])
  })

  it('ends with the last record of the millisecond, including counters of ffff', async () => {
    const { ms = 0 } = parseHlc(at(5)) ?? {}
    const end = formatHlc({ ms, counter: 0xffff })
    const expected = upTo(30).filter((n) => msAt(n) <= ms)
    expect(await numbers({ type: 'time_range', limit: 1_000, to_ts: end })).toEqual(expected)
  })

  it('shows the strand as it was, without later tombstones and restores', async () => {
    const agent = await newAgent(server, 'past')
    const record = (n: number) =>
      checkedCall(server, 'POST /v1/agents/past/records', { body: { data: { n } } })
    const zero = (await record(0)).body
    const one = (await record(1)).body
    await checkedCall(server, `DELETE /v1/agents/past/records/${zero.id}`)
    const two = (await record(2)).body
    await checkedCall(server, `POST /v1/agents/past/records/${zero.id}/restore`)
    await checkedCall(server, `DELETE /v1/agents/past/records/${one.id}`)
    const asOf = (to_ts: unknown) => numbers({ type: 'time_range', from_ts: 0, to_ts }, agent)
    expect(await asOf(zero.timestamp_hlc)).toEqual([0])
    expect(await asOf(one.timestamp_hlc)).toEqual([0, 1])
    expect(await asOf(two.timestamp_hlc)).toEqual([1, 2])
    expect(await numbers({ type: 'time_range' }, agent)).toEqual([0, 2])
    expect(await numbers({ type: 'latest' }, agent)).toEqual([2, 0])
  })

  it('answers 400 for an invalid time', async () => {
    for (const moment of [
      '',
      'yesterday',
      '2026-02-30',
      '2026-13-01T00:00:00Z',
      'xxxxxxxxxxxx-0000',
      -1,
      1.5,
      2027,
      '20270101',
      1_790_000_000,
    ]) {
      for (const name of ['from_ts', 'to_ts']) {
        const refused = await query({ type: 'time_range', [name]: moment })
        expect([moment, refused.status]).toEqual([moment, 400])
        expect(refused.body.errors[0].pointer).toBe(`/${name}`)
        if (Number(moment) > 1.5) expect(refused.body.detail).toContain('multiply seconds by 1000')
      }
    }
    for (const moment of [2 ** 48, Number.MAX_SAFE_INTEGER]) {
      expect((await query({ type: 'time_range', from_ts: moment })).status).toBe(400)
    }
  })
})

describe('hash and chain_head', () => {
  it('find one record or none; a deleted one is left out', async () => {
    const id = written[3]?.id
    for (const hash of [id, `sha256:${id}`]) expect(await numbers({ type: 'hash', hash })).toEqual([3])
    expect(await numbers({ type: 'hash', hash: '0'.repeat(64) })).toEqual([])
    const gone = (await checkedCall(server, 'POST /v1/agents/a/records', { body: { data: { n: 99 } } })).body
      .id
    await checkedCall(server, `DELETE /v1/agents/a/records/${gone}`)
    expect(await numbers({ type: 'hash', hash: gone })).toEqual([])
    expect((await query({ type: 'hash', hash: 'x' })).status).toBe(400)
    expect((await query({ type: 'hash', hash: '0'.repeat(64) }, 'absent')).status).toBe(404)
  })

  it('answers the head', async () => {
    const { status, body } = await query({ type: 'chain_head' })
    expect([status, body]).toEqual([200, (await checkedCall(server, 'GET /v1/agents/a/head')).body])
  })
})

describe('a cursor', () => {
  it.each(['asc', 'desc'])('lists every record once while others are written: %s', async (order) => {
    const agent = await newAgent(server, `paged-${order}`)
    const path = `POST /v1/agents/${agent}/records`
    for (let n = 0; n < 20; n++) await checkedCall(server, path, { body: { data: { n } } })
    const seen: number[] = []
    let cursor: string | undefined
    for (let page = 0; page < 10; page++) {
      const { body } = await query({ type: 'latest', limit: 3, order, ...(cursor ? { cursor } : {}) }, agent)
      seen.push(...body.records.map((record: { payload: { n: number } }) => record.payload.n))
      await checkedCall(server, path, { body: { data: { n: 100 + page } } })
      // Deleted after the first page: later pages still show the strand as it was.
      if (page === 0) {
        const ends = await query({ type: 'latest', limit: 1_000, order: 'asc' }, agent)
        for (const place of [1, 18]) {
          await checkedCall(
            server,
            `DELETE /v1/agents/${agent}/records/${ends.body.records[place].record_id}`,
          )
        }
      }
      cursor = body.next_cursor ?? undefined
      if (cursor === undefined) break
    }
    expect(cursor).toBeUndefined()
    expect(seen).toEqual(order === 'asc' ? upTo(20) : upTo(20).reverse())
  })

  it('leads through sparse matches to the end', async () => {
    const seen: number[] = []
    let cursor: string | undefined
    do {
      const where = [{ field: 'place.room', op: 'eq', value: 'r0' }]
      const { body } = await query({ type: 'latest', limit: 1, where, ...(cursor ? { cursor } : {}) })
      seen.push(...body.records.map((record: { payload: { n: number } }) => record.payload.n))
      cursor = body.next_cursor ?? undefined
    } while (cursor !== undefined)
    expect(seen).toEqual([25, 20, 15, 10, 5, 0])
  })

  // Regression: it was accepted, and led to an empty page or to records that the first page had.
  it('continues only a query of the same type and order, and no other list', async () => {
    const queries = [
      { type: 'latest' },
      { type: 'latest', order: 'asc' },
      { type: 'time_range' },
      { type: 'time_range', order: 'desc' },
    ]
    const first = await Promise.all(queries.map((one) => query({ ...one, limit: 2 })))
    const asOf = await checkedCall(server, `GET /v1/strand/as-of?agent=a&ts=${Date.now()}&limit=2`)
    const agents = await checkedCall(server, 'GET /v1/agents?limit=1')
    const cursors = [...first, asOf, agents].map(({ body }) => body.next_cursor)
    expect(cursors.every((cursor) => typeof cursor === 'string')).toBe(true)
    for (const [at, one] of queries.entries()) {
      const statuses = await Promise.all(
        cursors.map(async (cursor) => (await query({ ...one, limit: 2, cursor })).status),
      )
      expect(statuses).toEqual(cursors.map((_cursor, from) => (from === at ? 200 : 400)))
    }
    for (const cursor of cursors.slice(0, 5)) {
      const { status } = await checkedCall(server, `GET /v1/agents?limit=1&cursor=${cursor}`)
      expect(status).toBe(400)
    }
  })

  it('results in 400 or a page if the server did not issue it', async () => {
    const { body } = await query({ type: 'latest', limit: 2 })
    const places = fc.array(fc.oneof(fc.maxSafeInteger(), fc.double(), fc.string(), fc.constant(null)), {
      maxLength: 4,
    })
    const cursors = fc.oneof(
      fc.string({ maxLength: 512 }),
      fc.base64String({ maxLength: 200 }),
      fc
        .tuple(fc.constantFrom('latest asc', 'latest desc', 'as-of'), places)
        .map(([list, values]) => Buffer.from(JSON.stringify([list, ...values])).toString('base64url')),
      fc.nat({ max: body.next_cursor.length - 1 }).map((place) => body.next_cursor.slice(0, place)),
    )
    await fc.assert(
      fc.asyncProperty(cursors, fc.constantFrom('asc', 'desc'), async (cursor, order) => {
        const { status } = await query({ type: 'latest', cursor, order })
        expect([200, 400]).toContain(status)
      }),
      { numRuns: 300 },
    )
    for (const cursor of ['', 'x', 'bm9uZQ', 'WzFd', 'WyIxIiwyXQ', 'Wy0xLDJd', 'x'.repeat(513)]) {
      expect([cursor, (await query({ type: 'latest', cursor })).status]).toEqual([cursor, 400])
    }
    expect((await checkedCall(server, 'GET /readyz')).status).toBe(200)
  })
})

describe('a query', () => {
  it.each([
    ['no type', {}],
    ['another type', { type: 'all' }],
    ['a list', []],
    ['no row', { type: 'latest', limit: 0 }],
    ['1,001 rows', { type: 'latest', limit: 1_001 }],
    ['half a row', { type: 'latest', limit: 1.5 }],
    ['a member of another type', { type: 'latest', from_ts: 0 }],
    ['no hash', { type: 'hash' }],
    ['another order', { type: 'latest', order: 'up' }],
    ['no types', { type: 'latest', types: [] }],
    ['types in capitals', { type: 'latest', types: ['A'] }],
    ['a star in the middle', { type: 'latest', types: ['a*b'] }],
    ['another operator', { type: 'latest', where: [{ field: 'n', op: 'like', value: 1 }] }],
    ['no field', { type: 'latest', where: [{ op: 'eq', value: 1 }] }],
    ['no value', { type: 'latest', where: [{ field: 'n', op: 'eq' }] }],
  ])('answers 400 for %s', async (_what, body) => {
    const refused = await query(body)
    expect([refused.status, refused.body.code]).toEqual([400, 'validation_failed'])
    expect(refused.body.errors.length).toBeGreaterThan(0)
  })

  it('answers 400, 401, 403, 404 and 413, and writes nothing', async () => {
    const route = 'POST /v1/agents/a/query'
    const body = { type: 'latest' }
    const { key } = await scopedKey(server, ['records:write', 'ingest'])
    await expectUnchanged(server, 'a', async () => {
      for (const raw of ['', '{', '{"type":"latest","type":"latest"}', '{"type":"latest","__proto__":1}']) {
        expect((await checkedCall(server, route, { raw })).status).toBe(400)
      }
      expect((await checkedCall(server, route, { body, key: null })).status).toBe(401)
      expect((await checkedCall(server, route, { body, key })).status).toBe(403)
      const absent = await query(body, 'absent')
      expect([absent.status, absent.body.code]).toEqual([404, 'agent_not_found'])
      expect((await checkedCall(server, route, { raw: ' '.repeat(65_537) })).status).toBe(413)
    })
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(queryRoutes)).toEqual([])
})
