import { afterAll, afterEach, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import {
  type AsOfResponse,
  type GraphEdge,
  NotFoundError,
  ServiceClient,
  type TraversalResult,
} from '../../src/client/index.js'
import { startServer, type TestServer } from '../support/server/server.js'
import { answerJson, startScriptedServer, type ScriptedServer } from './scripted-server.js'

let scripted: ScriptedServer | undefined

afterEach(async () => {
  await scripted?.stop()
  scripted = undefined
})

describe('graph and time travel, against a running server', () => {
  let server: TestServer
  let client: ServiceClient

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_SHARDS: '2' } })
    client = new ServiceClient({ url: server.url, apiKey: server.rootKey })
    for (const name of ['ada', 'bob', 'cy']) await client.createAgent(name, undefined, 'free')
  })
  afterAll(() => server.stop())

  it('adds edges, and lists the outbound and inbound edges of an agent', async () => {
    const related = await client.graph.relate('ada', 'bob', 'knows')
    expect(related).toMatchObject({ src: 'ada', dst: 'bob', edge_type: 'knows', weight: 1, seq: 1 })
    await client.graph.addEdge({ src: 'bob', dst: 'cy', edge_type: 'knows', weight: 0.5 })
    await client.graph.relate('ada', 'cy', 'likes', 3)
    expect(await client.graph.edges('ada')).toEqual([
      { src: 'ada', dst: 'bob', edge_type: 'knows', weight: 1 },
      { src: 'ada', dst: 'cy', edge_type: 'likes', weight: 3 },
    ])
    const inbound = await client.graph.inboundEdges('cy', { edge_type: 'knows' })
    expect(inbound).toEqual([{ src: 'bob', dst: 'cy', edge_type: 'knows', weight: 0.5 }])
    expectTypeOf(inbound).toEqualTypeOf<GraphEdge[]>()
  })

  it('traverses one step by default, or the given depth', async () => {
    const near = await client.graph.traverse('ada', { edge_type: 'knows' })
    expect(near).toMatchObject({ nodes: ['ada', 'bob'], truncated: false })
    expect((await client.graph.traverse('ada', { edge_type: 'knows', depth: 3 })).nodes).toEqual([
      'ada',
      'bob',
      'cy',
    ])
    await expect(client.graph.traverse('ada', { depth: 4 })).rejects.toMatchObject({ status: 400 })
    expectTypeOf(near).toEqualTypeOf<TraversalResult>()
  })

  it('removes an edge, and rejects with an error for missing ones', async () => {
    const before = await client.agent('ada').head()
    await client.graph.removeEdge('ada', 'likes', 'cy')
    expect(await client.graph.edges('ada', { edge_type: 'likes' })).toEqual([])
    const then = await client.graph.edges('ada', { edge_type: 'likes', as_of: before.timestamp_hlc })
    expect(then).toHaveLength(1)
    await expect(client.graph.removeEdge('ada', 'likes', 'cy')).rejects.toMatchObject({
      code: 'edge_not_found',
    })
    await expect(client.graph.relate('ada', 'unknown', 'knows')).rejects.toBeInstanceOf(NotFoundError)
  })

  it('reads a strand as of a moment (HLC, date, text or milliseconds), page by page', async () => {
    const notes = client.agent<{ n: number }>('bob')
    await notes.writeBatch([{ n: 1 }, { n: 2 }, { n: 3 }])
    const { timestamp_hlc: then, chain_head: head } = await notes.head()
    await notes.deleteRecord(head)
    const first = await notes.asOf(then, { limit: 2 })
    expect(first.records.map(({ data }) => data)).toEqual([{ n: 1 }, { n: 2 }])
    expect(first).toMatchObject({ chain_head: head, zone: 'free' })
    expect(first.checkpoint).toContain('strandfast/')
    const second = await notes.asOf(then, { cursor: first.next_cursor ?? '' })
    expect(second.records.map(({ data }) => data.n)).toEqual([3])
    for (const ts of [new Date('2999-01-01'), '2999-01-01', Date.UTC(2999, 0)]) {
      expect((await notes.asOf(ts)).records).toHaveLength(2)
    }
    expect(await notes.asOf(0)).toMatchObject({ records: [], chain_head: null, record_count: 0 })
    expectTypeOf(first).toEqualTypeOf<AsOfResponse<{ n: number }>>()
  })
})

it('reads all pages of edges, and stops at a repeated cursor', async () => {
  const edge = { src: 'a', dst: 'b', edge_type: 't', weight: 1 }
  scripted = await startScriptedServer(
    answerJson({ edges: [edge], next_cursor: 'more' }),
    answerJson({ edges: [], next_cursor: 'on' }),
    answerJson({ edges: [edge], next_cursor: null }),
    answerJson({ edges: [edge], next_cursor: 'same' }),
  )
  const { graph } = new ServiceClient({ url: scripted.url })
  expect(await graph.edges('a::b')).toEqual([edge, edge])
  const path = '/v1/graph/edges/a::b?direction=out&limit=1000'
  expect(scripted.received.map(({ url }) => url)).toEqual([path, `${path}&cursor=more`, `${path}&cursor=on`])
  await expect(graph.edges('a')).rejects.toMatchObject({ code: 'invalid_response' })
})

it('sends the API key if there is one, even if the client has a token', async () => {
  scripted = await startScriptedServer(answerJson({ nodes: ['a'], edges: [], truncated: false }))
  const { url, received } = scripted
  await new ServiceClient({ url, apiKey: 'the-key', token: 'the-token' }).graph.traverse('a')
  await new ServiceClient({ url, token: 'the-token' }).graph.traverse('a')
  expect(received.map(({ headers }) => headers.authorization)).toEqual(['Bearer the-key', 'Bearer the-token'])
})

it('sends changes with an idempotency key', async () => {
  scripted = await startScriptedServer(answerJson({}, 201))
  const { graph } = new ServiceClient({ url: scripted.url })
  await graph.addEdge({ src: 'a', dst: 'b', edge_type: 't' })
  await graph.removeEdge('a', 't', 'b', { idempotencyKey: 'mine' })
  const [added, removed] = scripted.received
  expect(added).toMatchObject({
    method: 'POST',
    url: '/v1/graph/edges',
    body: '{"src":"a","dst":"b","edge_type":"t"}',
  })
  expect(added?.headers['idempotency-key']).toMatch(/^[0-9a-f]{32}$/)
  expect(removed).toMatchObject({
    method: 'DELETE',
    url: '/v1/graph/edges?src=a&edge_type=t&dst=b',
    body: '',
  })
  expect(removed?.headers['idempotency-key']).toBe('mine')
})
