import { afterEach, describe, expect, expectTypeOf, it } from 'vitest'
import {
  type BatchItem,
  type IngestSummary,
  type RecordView,
  ServiceClient,
  type WriteResponse,
} from '../../src/client/index.js'
import { type Answer, type ScriptedServer, answerJson, startScriptedServer } from './scripted-server.js'

let server: ScriptedServer | undefined

afterEach(async () => {
  await server?.stop()
  server = undefined
})

async function clientOf(...answers: Answer[]) {
  server = await startScriptedServer(...answers)
  return { client: new ServiceClient({ url: server.url, agent: 'main' }), received: server.received }
}

const hash = 'ab'.repeat(32)
const bare = { record_id: hash, payload: { a: 1 }, deleted: false }

interface Note {
  title: string
  done: boolean
}

describe('a handle', () => {
  it('writes to a collection and to an agent by different routes', async () => {
    const { client, received } = await clientOf(answerJson({ id: hash }, 201))
    await client.collection<Pick<Note, 'title'>>('notes').write({ title: 'x' })
    await client.agent('acme::notes').write({ title: 'x' }, { type: 'note', ifMatch: `sha256:${hash}` })
    await client.agent().write({ title: 'x' })
    expect(received.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['POST', '/v1/collections/notes/records', '{"data":{"title":"x"}}'],
      ['POST', '/v1/agents/acme::notes/records', '{"data":{"title":"x"},"type":"note"}'],
      ['POST', '/v1/agents/main/records', '{"data":{"title":"x"}}'],
    ])
    expect(received.map(({ headers }) => headers['if-match'])).toEqual([undefined, `"${hash}"`, undefined])
  })

  it('sends a batch in order and returns the results', async () => {
    const refused = { error: { code: 'too_large', detail: 'Expected less' } }
    const { client, received } = await clientOf(
      answerJson({ results: [{ id: 'a', timestamp_ms: 7 }, refused] }, 201),
    )
    const notes = client.collection<Note>('notes')
    const done: readonly Note[] = [
      { title: 'x', done: false },
      { title: 'y', done: true },
    ]
    expect(await notes.writeBatch(done, { type: 'note', atomic: false })).toEqual([
      { id: 'a', timestamp_ms: 7, timestamp: new Date(7) },
      refused,
    ])
    await notes.writeBatch(done.slice(1))
    expect(received[0]?.url).toBe('/v1/collections/notes/records/batch')
    expect(received.map(({ body }) => body)).toEqual([
      '{"records":[{"data":{"title":"x","done":false},"type":"note"},{"data":{"title":"y","done":true},"type":"note"}],"atomic":false}',
      '{"records":[{"data":{"title":"y","done":true}}]}',
    ])
    expectTypeOf(() => notes.writeBatch([])).returns.resolves.toEqualTypeOf<WriteResponse[]>()
    expectTypeOf(() => notes.writeBatch([], { atomic: false })).returns.resolves.toEqualTypeOf<BatchItem[]>()
  })

  it('reads a record of a collection from its agent, and adds data', async () => {
    const { client, received } = await clientOf(answerJson(bare))
    const record = await client.collection<Note>('notes').get(`sha256:${hash}`)
    expect(record.data).toBe(record.payload)
    expect(record.data).toEqual({ a: 1 })
    expect(received[0]?.url).toBe(`/v1/agents/notes/records/sha256:${hash}`)
    expectTypeOf(record).toEqualTypeOf<RecordView<Note>>()
  })

  it('requests the twenty latest records by default', async () => {
    const { client, received } = await clientOf(answerJson({ records: [bare], next_cursor: null }))
    const { records } = await client.agent().latest()
    await client.agent().latest(3)
    expect(records[0]?.data).toEqual({ a: 1 })
    expect(received.map(({ url }) => url)).toEqual(['/v1/agents/main/query', '/v1/agents/main/query'])
    expect(received.map(({ body }) => body)).toEqual([
      '{"type":"latest","limit":20}',
      '{"type":"latest","limit":3}',
    ])
  })

  it('returns empty records if an answer has none, and the head of a chain_head query', async () => {
    const { client } = await clientOf(answerJson({ chain_head: hash, seq: 4 }))
    const result = await client.agent().query({ type: 'chain_head' })
    expect(result).toEqual({ chain_head: hash, seq: 4, records: [], next_cursor: null })
  })

  it('follows the cursor through all pages of a query', async () => {
    const page = (seq: number, next: string | null) =>
      answerJson({ records: [{ seq, payload: {} }], next_cursor: next })
    const { client, received } = await clientOf(page(1, 'c1'), page(2, 'c2'), page(3, null))
    const seqs: number[] = []
    for await (const record of client.agent().queryAll({ type: 'time_range', from_ts: 0 }))
      seqs.push(record.seq)
    expect(seqs).toEqual([1, 2, 3])
    expect(received.map(({ body }) => JSON.parse(body).cursor)).toEqual([undefined, 'c1', 'c2'])
  })

  it('reports each warning in the pages of a query once', async () => {
    const page = (next: string | null, ...warnings: string[]) =>
      answerJson({ records: [], next_cursor: next, ...(warnings.length > 0 && { warnings }) })
    const { client } = await clientOf(
      page('c1', 'one'),
      page('c2'),
      page('c3', 'one', 'two'),
      page(null, 'two'),
    )
    const warned: string[] = []
    const rows = client.agent().queryAll({ type: 'latest' }, { onWarning: (warning) => warned.push(warning) })
    for await (const row of rows) expect(row).toBeUndefined()
    expect(warned).toEqual(['one', 'two'])
  })

  it('stops with an error when a cursor does not advance', async () => {
    const { client } = await clientOf(answerJson({ records: [], next_cursor: 'c1' }))
    const rows = client.agent().queryAll({ type: 'latest' })
    await expect(rows.next()).rejects.toMatchObject({ code: 'invalid_response' })
  })

  it('deletes and restores records, and reads head and status', async () => {
    const { client, received } = await clientOf(answerJson({ record_id: hash, state: 'deleted', seq: 2 }))
    const notes = client.collection('notes')
    expect(await notes.deleteRecord(hash)).toEqual({ record_id: hash, state: 'deleted', seq: 2 })
    await notes.restoreRecord(hash)
    await notes.restore(hash)
    await notes.head()
    await notes.status()
    expect(received.map(({ method, url }) => `${method} ${url}`)).toEqual([
      `DELETE /v1/agents/notes/records/${hash}`,
      `POST /v1/agents/notes/records/${hash}/restore`,
      `POST /v1/agents/notes/records/${hash}/restore`,
      'GET /v1/agents/notes/head',
      'GET /v1/agents/notes/status',
    ])
    expect(received.map(({ headers }) => headers['idempotency-key'] !== undefined)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
  })

  it('refuses names and hashes that would reach another route', async () => {
    const { client, received } = await clientOf(answerJson({}))
    expect(() => client.agent('..')).toThrow(TypeError)
    expect(() => client.collection('')).toThrow(TypeError)
    await expect(client.agent().get('..')).rejects.toThrow(TypeError)
    await client.agent('a/b?c').head()
    expect(received.map(({ url }) => url)).toEqual(['/v1/agents/a%2Fb%3Fc/head'])
  })
})

describe('the client', () => {
  it('creates an agent', async () => {
    const { client, received } = await clientOf(answerJson({ agent_id: 'ledger' }, 201))
    await client.createAgent('ledger', hash, 'immutable_core')
    await client.createAgent('ledger', undefined, { zone: 'free', idempotencyKey: 'k' })
    expect(received.map(({ url, body }) => [url, JSON.parse(body)])).toEqual([
      ['/v1/agents', { name: 'ledger', zone: 'immutable_core', seed_hex: hash }],
      ['/v1/agents', { name: 'ledger', zone: 'free' }],
    ])
  })

  it('lists all agents, page by page', async () => {
    const { client, received } = await clientOf(
      answerJson({ agents: ['a', 'b'], total: 3, next_cursor: 'b' }),
      answerJson({ agents: ['c'], total: 3, next_cursor: null }),
    )
    expect(await client.listAgents()).toEqual({ agents: ['a', 'b', 'c'], total: 3 })
    expect(received.map(({ url }) => url)).toEqual([
      '/v1/agents?limit=1000',
      '/v1/agents?limit=1000&cursor=b',
    ])
  })

  it('stops listing at the limit', async () => {
    const { client, received } = await clientOf(
      answerJson({ agents: ['a', 'b'], total: 9, next_cursor: 'b' }),
    )
    expect(await client.listAgents({ limit: 2, prefix: 'x' })).toEqual({ agents: ['a', 'b'], total: 9 })
    expect(received.map(({ url }) => url)).toEqual(['/v1/agents?limit=2&prefix=x'])
  })

  it('ingests one record without a wrapper', async () => {
    const { client, received } = await clientOf(answerJson({ id: hash }, 201))
    await client.ingest('sensors', { celsius: 21 })
    expect(received[0]).toMatchObject({ method: 'POST', url: '/v1/ingest/sensors', body: '{"celsius":21}' })
    expect(received[0]?.headers['content-type']).toBe('application/json')
  })

  it('requests checkpoint, proof and export', async () => {
    const { client, received } = await clientOf((_request, response) => void response.end('{}'))
    expect(await client.checkpoint()).toBe('{}')
    await client.proof('ledger', hash)
    const exported = await client.exportStrand({ fromSeq: 0, toSeq: 9 })
    expect(await new Response(exported).text()).toBe('{}')
    expect(received.map(({ url }) => url)).toEqual([
      '/v1/strand/checkpoint?agent=main',
      `/v1/strand/proof?agent=ledger&hash=${hash}`,
      '/v1/strand/export?agent=main&from_seq=0&to_seq=9',
    ])
  })
})

describe('an ingest of many records', () => {
  const summary = (accepted: number, more: Partial<IngestSummary> = {}): IngestSummary => ({
    accepted,
    rejected: 0,
    errors: [],
    first_seq: 1,
    last_seq: accepted,
    chain_head: hash,
    ...more,
  })

  async function* countTo(count: number): AsyncGenerator<object> {
    for (let n = 1; n <= count; n++) yield { n }
  }

  it('streams an async source as one NDJSON request', async () => {
    const { client, received } = await clientOf(answerJson(summary(20_000)))
    expect(await client.ingestMany('sensors', countTo(20_000))).toEqual(summary(20_000))
    expect(received).toHaveLength(1)
    expect(received[0]?.headers['content-type']).toBe('application/x-ndjson')
    expect(received[0]?.headers['transfer-encoding']).toBe('chunked')
    const lines = received[0]?.body.split('\n') ?? []
    expect(lines).toHaveLength(20_001)
    expect(lines.slice(0, 2)).toEqual(['{"n":1}', '{"n":2}'])
    expect(lines.at(-1)).toBe('')
  })

  it('rejects with the error of the source, not with a network failure', async () => {
    const { client } = await clientOf(answerJson(summary(1)))
    async function* source(): AsyncGenerator<object> {
      yield { n: 1 }
      throw new RangeError('The sensor is off')
    }
    await expect(client.ingestMany('sensors', source())).rejects.toThrow(new RangeError('The sensor is off'))
  })

  it('sends chunks and combines their summaries, with continuous line numbers', async () => {
    const { client, received } = await clientOf(
      answerJson(summary(1, { rejected: 1, errors: [{ line: 2, code: 'too_large', detail: 'x' }] })),
      answerJson(
        summary(0, {
          rejected: 1,
          errors: [{ line: 1, code: 'too_large', detail: 'x' }],
          first_seq: null,
          last_seq: null,
        }),
      ),
    )
    const big = { text: 'x'.repeat(600_000) }
    const combined = await client.ingestMany('sensors', [big, big, { last: true }], {
      upload: 'chunks',
      onError: 'skip',
    })
    expect(received.map(({ body }) => body.split('\n').length - 1)).toEqual([2, 1])
    expect(new Set(received.map(({ headers }) => headers['idempotency-key'])).size).toBe(2)
    expect(combined).toMatchObject({ accepted: 1, rejected: 2, first_seq: 1, last_seq: 1 })
    expect(combined.errors.map(({ line }) => line)).toEqual([2, 3])
  })

  it('sends one chunk when the ingest is all or nothing', async () => {
    const { client, received } = await clientOf(answerJson(summary(3)))
    const big = { text: 'x'.repeat(600_000) }
    await client.ingestMany('sensors', [big, big, big], { upload: 'chunks', onError: 'reject_all' })
    expect(received.map(({ url }) => url)).toEqual(['/v1/ingest/sensors?on_error=reject_all'])
  })
})
