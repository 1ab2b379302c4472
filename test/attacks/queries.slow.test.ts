import { afterAll, beforeAll, expect, it } from 'vitest'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ nodeOptions: probedOptions, env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

async function write(agent: string, data: unknown): Promise<void> {
  const { status, text } = await call(server, `POST /v1/collections/${agent}/records`, { body: { data } })
  expect(status, text).toBe(201)
}

async function query(agent: string, where: unknown) {
  return call(server, `POST /v1/agents/${agent}/query`, { body: { type: 'latest', limit: 10, where } })
}

/** Reads all pages of a query. @returns the number of records */
async function count(agent: string, where: unknown): Promise<number> {
  let found = 0
  let cursor: string | null = null
  do {
    const body = { type: 'latest', limit: 10, where, ...(cursor !== null && { cursor }) }
    const answer = await call(server, `POST /v1/agents/${agent}/query`, { body })
    expect(answer.status, answer.text).toBe(200)
    found += answer.body.records.length
    cursor = answer.body.next_cursor
  } while (cursor !== null)
  return found
}

it('a query compares lists of 1,000 items by `in` with records of 5,000 keys without a stall', async () => {
  const keys = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`key${n}`, n]))
  for (let n = 0; n < 20; n++) await write('wide', { n, keys })
  const items = (length: number) => Array.from({ length }, (_, n) => ({ n }))
  const conditions = (length: number) => [{ field: 'keys', op: 'in', value: items(length) }]
  await expectHarmless(server, async () => {
    for (let time = 0; time < 5; time++) expect(await count('wide', conditions(1_000))).toBe(0)
    // An empty object is the shortest item: 21,000 of them fit the request.
    const most = Array.from({ length: 21_000 }, () => ({}))
    const refused = await query('wide', [{ field: 'keys', op: 'in', value: most }])
    expect([refused.status, refused.body.errors[0].pointer]).toEqual([400, '/where/0/value'])
  })
})

it('a query reads large records of every shape in several steps', async () => {
  const brackets = '['.repeat(30) + ']'.repeat(30)
  const shapes = [
    'x'.repeat(240_000),
    JSON.parse(`[${Array.from({ length: 3_900 }, () => brackets).join()}]`),
    Array.from({ length: 80_000 }, () => ({})),
  ]
  const conditions = Array.from({ length: 32 }, (_, n) => ({ field: `none${n}`, op: 'exists', value: false }))
  for (const [index, shape] of shapes.entries()) {
    for (let n = 0; n < (index === 0 ? 60 : 20); n++) await write(`big${index}`, { n, shape })
  }
  await expectHarmless(server, async () => {
    for (const index of shapes.keys()) {
      expect(await count(`big${index}`, [{ field: 'n', op: 'eq', value: 7 }])).toBe(1)
      expect(await count(`big${index}`, [...conditions.slice(1), { field: 'n', op: 'lt', value: 0 }])).toBe(0)
    }
  })
})
