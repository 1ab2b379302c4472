// @run through a standby
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, headOf, leavesUnchanged } from '../../support/http/answers.js'
import { startServer, type TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

const send = (path: string, raw: string | Uint8Array, headers: Record<string, string> = {}) =>
  ask(server, `POST /v1/ingest${path}`, { raw, headers: { 'content-type': 'application/json', ...headers } })

async function payloads(agent: string): Promise<unknown[]> {
  const body = { type: 'time_range', limit: 1_000, types: ['record', 'ingest/rejected'] }
  const page = await ask(server, `POST /v1/agents/${agent}/query`, { body })
  return page.body.records.map((record: { payload: unknown }) => record.payload)
}

describe('an array for one agent', () => {
  it('is a record an element, in order, whatever stands in them', async () => {
    const elements = [{ n: 0 }, { text: '],[{"\\"}\\\\' }, { deep: [[1, 2], { a: [] }] }, { 'é,': '\n' }]
    for (const [agent, raw] of [
      ['compact', JSON.stringify(elements)],
      ['pretty', `\r\n \t${JSON.stringify(elements, null, 2)}\n`],
    ] as const) {
      const { status, body } = await send(`/${agent}`, raw)
      expect([status, body]).toMatchObject([200, { accepted: 4, rejected: 0, first_seq: 1, last_seq: 4 }])
      expect(await payloads(agent)).toEqual(elements)
    }
    const packed = await send('/packed', gzipSync(JSON.stringify(elements)), { 'content-encoding': 'gzip' })
    expect(packed.body.accepted).toBe(4)
  })

  it('is taken under any media type that ends in +json, and none at all', async () => {
    for (const type of ['application/vnd.kafka.json.v2+json', 'application/ld+JSON; charset=utf-8']) {
      expect((await send('/typed', '[{}]', { 'content-type': type })).status).toBe(200)
      expect((await send('/typed', '{}', { 'content-type': type })).status).toBe(201)
    }
    expect((await send('/typed', '[{}]', { 'content-type': 'text/json+xml' })).status).toBe(415)
  })

  it('may be empty', async () => {
    expect((await send('/unborn', ' [ ] ')).body).toMatchObject({ accepted: 0, rejected: 0 })
    expect(await headOf(server, 'unborn')).toBeUndefined()
  })

  it('is longer than a batch may be, and comes in any parts', async () => {
    const elements = Array.from({ length: 20_000 }, (_none, n) => ({ n, text: 'x'.repeat(n % 300) }))
    const headers = { 'idempotency-key': 'long' }
    const first = await send('/long', JSON.stringify(elements), headers)
    expect(first.body).toMatchObject({ accepted: 20_000, last_seq: 20_000 })
    const again = await send('/long', JSON.stringify(elements), headers)
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([first.body, 'true'])
  })

  it('has elements refused one by one, by their number', async () => {
    const raw = '[{"n":1},7,{"a":1,"a":2},[{}],{"n":1} {"n":2},{"a":"x\ny"},{"a":},{"n":2}]'
    const { status, body } = await send('/mixed', raw)
    expect([status, body.accepted, body.rejected]).toEqual([200, 2, 6])
    expect(body.errors.map(({ line }: { line: number }) => line)).toEqual([2, 3, 4, 5, 6, 7])
    const kept = await send('/mixed-kept?on_error=keep', raw)
    expect([kept.status, kept.body.kept]).toEqual([200, 6])
    const all = await leavesUnchanged(server, 'mixed', () => send('/mixed?on_error=reject_all', raw))
    expect([all.status, all.body.code]).toEqual([422, 'ingest_rejected'])
    expect((await send('/mixed?on_error=reject_all', '[{},{}]')).body.accepted).toBe(2)
  })

  it('is answered 400, with what was written before, when it is not whole', async () => {
    for (const raw of [
      '[',
      '[{}',
      '[{},',
      '[{},]',
      '[,{}]',
      '[{},,{}]',
      '[{}]]',
      '[{}] {}',
      '[{}}',
      '[}',
      '[{"a":"]',
    ]) {
      for (const query of ['', '?on_error=keep', '?on_error=reject_all']) {
        const before = (await headOf(server, 'mixed'))?.seq ?? 0
        const { status, body } = await send(`/mixed${query}`, raw)
        expect([raw, status, body.code]).toEqual([raw, 400, 'validation_failed'])
        const after = (await headOf(server, 'mixed'))?.seq ?? 0
        expect([raw, after - before]).toEqual([raw, body.accepted ?? 0])
      }
    }
  })

  it('honours If-Match', async () => {
    const head = (await headOf(server, 'mixed'))?.chain_head
    const headers = { 'if-match': `"${head}"` }
    expect((await send('/mixed', '[{},{}]', headers)).status).toBe(200)
    expect((await send('/mixed', '[{},{}]', headers)).status).toBe(412)
  })
})

describe('an array for many agents', () => {
  it('is shared out, of any elements {agent, data, type?}', async () => {
    const raw = JSON.stringify(
      [{ agent: 'x', data: { n: 1 } }, { agent: 'y', data: { n: 2 }, type: 'reading' }, { n: 3 }],
      null,
      1,
    )
    const { status, body } = await send('', raw)
    expect([status, body]).toMatchObject([200, { accepted: 2, rejected: 1, errors: [{ line: 3 }] }])
    expect(Object.keys(body.agents)).toEqual(['x', 'y'])
  })

  it('is what JSON has to be there', async () => {
    for (const raw of ['', '{"agent":"x","data":{}}', '7']) {
      const { status, body } = await send('', raw)
      expect([status, body.code]).toEqual([400, 'validation_failed'])
    }
  })
})
