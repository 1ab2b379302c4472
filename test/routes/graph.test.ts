import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { shardOf } from '../../src/strand/placement.js'
import { graphRoutes } from '../../src/front/routes/graph.js'
import {
  checkedCall,
  headOf,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import {
  addEdge,
  edgesOf,
  edgeText,
  inSlices,
  makeAgents,
  removeEdge,
  type Link,
} from '../support/shard/graph.js'
import type { TestAnswer, TestServer } from '../support/server/server.js'
import { signUp } from '../support/auth/users.js'

const SHARDS = 3

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: String(SHARDS) } })
})
afterAll(() => server.stop())

let agentCount = 0

/** New agents with unique names, on every shard if there are several. */
async function agents(count: number): Promise<string[]> {
  const names: string[] = []
  for (let n = 0; names.length < count; n++) {
    const name = `g${agentCount}-${n}`
    if (count < SHARDS || shardOf(name, SHARDS) === names.length % SHARDS) names.push(name)
  }
  agentCount++
  await makeAgents(server, names)
  return names
}

const add = (...link: Link) => addEdge(server, link)
const remove = (...link: Link) => removeEdge(server, link)
const codeOf = ({ status, body }: TestAnswer) => [status, body.code]

async function traverse(agent: string, query: Record<string, string> = {}) {
  const route = `GET /v1/graph/traverse/${agent}?${new URLSearchParams(query)}`
  const { status, body, text } = await checkedCall(server, route)
  expect(status, text).toBe(200)
  return { nodes: body.nodes, edges: body.edges.map(edgeText), truncated: body.truncated }
}

describe('adding an edge', () => {
  it('appends a signed record to the strand of the source, and none to that of the destination', async () => {
    const [a = '', b = ''] = await agents(2)
    const before = await headOf(server, b)
    const { status, body } = await add(a, b)
    expect(status).toBe(201)
    const head = await headOf(server, a)
    expect(body).toMatchObject({ src: a, dst: b, edge_type: 'likes', weight: 1, record_id: head?.chain_head })
    expect(body.seq).toBe(head?.seq)
    const { body: record } = await checkedCall(server, `GET /v1/agents/${a}/records/${body.record_id}`)
    expect(record).toMatchObject({
      type: 'edge/add',
      payload: { src: a, dst: b, edge_type: 'likes', weight: 1 },
      signature: expect.stringMatching(/^[0-9a-f]{128}$/),
    })
    expect(await headOf(server, b)).toEqual(before)
    const latest = await checkedCall(server, `POST /v1/agents/${a}/query`, { body: { type: 'latest' } })
    expect(latest.body.records).toEqual([])
  })

  it('changes the weight of an existing edge', async () => {
    const [a = '', b = ''] = await agents(2)
    for (const weight of [1, -0.25, 1e300]) expect((await add(a, b, 'likes', weight)).status).toBe(201)
    expect(await edgesOf(server, a)).toEqual([`${a} likes ${b} 1e+300`])
    expect(await edgesOf(server, b, { direction: 'in' })).toEqual([`${a} likes ${b} 1e+300`])
    expect((await headOf(server, a))?.record_count).toBe(3)
  })

  it('is allowed in every zone', async () => {
    for (const zone of ['immutable_core', 'protected', 'governed']) {
      const agent = await newAgent(server, `adds-${zone}`, zone)
      expect((await add(agent, 'default')).status).toBe(201)
    }
  })

  it.each([
    ['no destination', { dst: undefined }],
    ['no type', { edge_type: undefined }],
    ['an empty type', { edge_type: '' }],
    ['a type with a space', { edge_type: 'a b' }],
    ['a type that is too long', { edge_type: 'x'.repeat(65) }],
    ['a weight that is not a number', { weight: '1' }],
    ['a weight of null', { weight: null }],
    ['an invalid name', { src: '../a' }],
    ['an unknown member', { as_of: 1 }],
  ])('answers 400 to %s', async (_what, change) => {
    const body = { src: 'default', dst: 'default', edge_type: 'x', ...change }
    const refused = await expectUnchanged(server, 'default', () =>
      checkedCall(server, 'POST /v1/graph/edges', { body }),
    )
    expect(codeOf(refused)).toEqual([400, 'validation_failed'])
  })

  it('answers 404 when one of its ends does not exist', async () => {
    const [a = ''] = await agents(1)
    expect(codeOf(await expectUnchanged(server, a, () => add(a, 'absent')))).toEqual([404, 'agent_not_found'])
    expect(codeOf(await add('absent', a))).toEqual([404, 'agent_not_found'])
    expect(await edgesOf(server, a, { direction: 'in' })).toEqual([])
  })

  it('honours If-Match and an Idempotency-Key', async () => {
    const [a = '', b = '', c = ''] = await agents(3)
    const stale = { 'if-match': `"${'0'.repeat(64)}"` }
    const refused = await expectUnchanged(server, a, () => addEdge(server, [a, b], { headers: stale }))
    expect(codeOf(refused)).toEqual([412, 'head_mismatch'])
    const headers = { 'idempotency-key': `edge-${a}` }
    const answers = await Promise.all(Array.from({ length: 6 }, () => addEdge(server, [a, b], { headers })))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect((await headOf(server, a))?.record_count).toBe(1)
    const other = await expectUnchanged(server, a, () => addEdge(server, [a, c], { headers }))
    expect(codeOf(other)).toEqual([422, 'idempotency_key_reused'])
  })

  it('accepts a key with the scope that reaches both ends, but no user', async () => {
    const [a = '', b = '', c = ''] = await agents(3)
    const reader = await scopedKey(server, ['records:read', 'ingest', 'agents:admin'])
    const limited = await scopedKey(server, ['records:write', 'records:delete'], [a, b])
    const user = await signUp(server, 'edges@example.org')
    const outcomes: unknown[] = []
    for (const [key, link] of [
      [reader.key, [a, b]],
      [limited.key, [a, c]],
      [limited.key, [c, a]],
      [limited.key, ['absent', a]],
      [user, [a, b]],
      [null, [a, b]],
    ] as const) {
      outcomes.push((await expectUnchanged(server, a, () => addEdge(server, link, { key }))).status)
      outcomes.push((await expectUnchanged(server, a, () => removeEdge(server, link, { key }))).status)
    }
    expect(outcomes).toEqual([403, 403, 403, 403, 403, 403, 403, 403, 403, 403, 401, 401])
    expect((await addEdge(server, [a, b], { key: limited.key })).status).toBe(201)
    const { key: appends } = await scopedKey(server, ['records:write', 'records:erase', 'ingest'])
    const kept = await expectUnchanged(server, a, () => removeEdge(server, [a, b], { key: appends }))
    expect(codeOf(kept)).toEqual([403, 'forbidden'])
    expect((await removeEdge(server, [a, b], { key: limited.key })).status).toBe(200)
    for (const path of [`edges/${a}`, `traverse/${a}`]) {
      expect((await checkedCall(server, `GET /v1/graph/${path}`, { key: user })).status).toBe(403)
      expect((await checkedCall(server, `GET /v1/graph/${path}`, { key: limited.key })).status).toBe(403)
    }
  })
})

describe('removing an edge', () => {
  it('removes it from both indexes with a record, and it can be added again', async () => {
    const [a = '', b = ''] = await agents(2)
    await add(a, b, 'likes', 4)
    const { status, body } = await remove(a, b)
    expect([status, body.removed]).toEqual([200, true])
    expect(body.record_id).toBe((await headOf(server, a))?.chain_head)
    const { body: record } = await checkedCall(server, `GET /v1/agents/${a}/records/${body.record_id}`)
    expect(record).toMatchObject({
      type: 'edge/remove',
      payload: { src: a, dst: b, edge_type: 'likes', principal: 'root' },
    })
    expect(await edgesOf(server, a)).toEqual([])
    expect(await edgesOf(server, b, { direction: 'in' })).toEqual([])
    expect(codeOf(await expectUnchanged(server, a, () => remove(a, b)))).toEqual([404, 'edge_not_found'])
    await add(a, b)
    expect(await edgesOf(server, b, { direction: 'in' })).toEqual([`${a} likes ${b} 1`])
  })

  it('does not change edges of other types, other ends or the other direction', async () => {
    const [a = '', b = '', c = ''] = await agents(3)
    const links: Link[] = [
      [a, b],
      [a, b, 'hates'],
      [a, c],
      [b, a],
    ]
    for (const link of links) await addEdge(server, link)
    await remove(a, b)
    expect(await edgesOf(server, a)).toEqual([`${a} hates ${b} 1`, `${a} likes ${c} 1`])
    expect(await edgesOf(server, a, { direction: 'in' })).toEqual([`${b} likes ${a} 1`])
  })

  it('needs an approval if the zone of the source requires it', async () => {
    const { key } = await scopedKey(server, ['proposals:decide'])
    const agent = await newAgent(server, 'guarded', 'protected')
    await add(agent, 'default', 'guards')
    const proposed = await remove(agent, 'default', 'guards')
    expect([proposed.status, proposed.body.state]).toEqual([202, 'proposed'])
    expect(codeOf(await remove(agent, 'default', 'guards'))).toEqual([409, 'proposal_open'])
    expect(await edgesOf(server, agent)).toEqual([`${agent} guards default 1`])
    const approve = `POST /v1/proposals/${proposed.body.proposal_id}/approve`
    const { body } = await checkedCall(server, approve, { key })
    expect(body).toMatchObject({
      state: 'applied',
      action: 'remove_edge',
      change: { edge: { edge_type: 'guards', dst: 'default' } },
    })
    expect(await edgesOf(server, agent)).toEqual([])
    expect(await edgesOf(server, 'default', { direction: 'in', edge_type: 'guards' })).toEqual([])
  })

  it('is refused in zone immutable_core', async () => {
    const agent = await newAgent(server, 'stone', 'immutable_core')
    await add(agent, 'default')
    const refused = await expectUnchanged(server, agent, () => remove(agent, 'default'))
    expect(codeOf(refused)).toEqual([403, 'zone_immutable'])
  })

  it('answers 400 for missing parameters, and 404 for a missing source', async () => {
    const whole = { src: 'default', edge_type: 'x', dst: 'default' }
    for (const name of Object.keys(whole)) {
      const rest = new URLSearchParams(Object.entries(whole).filter(([one]) => one !== name))
      const refused = await checkedCall(server, `DELETE /v1/graph/edges?${rest}`)
      expect(codeOf(refused)).toEqual([400, 'validation_failed'])
      expect(refused.body.errors[0].pointer).toBe(`?${name}`)
    }
    expect(codeOf(await remove('absent', 'default'))).toEqual([404, 'agent_not_found'])
  })
})

describe('the edges of an agent', () => {
  it('are listed from sources in every shard, in order, page by page', async () => {
    const [hub = '', ...others] = await agents(31)
    await inSlices(others, async (other) => {
      for (const edgeType of ['b', 'a']) {
        await add(hub, other, edgeType)
        await add(other, hub, edgeType)
      }
    })
    const sorted = ['a', 'b'].flatMap((edgeType) => others.toSorted().map((other) => [edgeType, other]))
    const outward = sorted.map(([edgeType, other]) => `${hub} ${edgeType} ${other} 1`)
    const inward = sorted.map(([edgeType, other]) => `${other} ${edgeType} ${hub} 1`)
    for (const limit of ['1', '7', '60', '1000']) {
      expect(await edgesOf(server, hub, { limit })).toEqual(outward)
      expect(await edgesOf(server, hub, { direction: 'in', limit })).toEqual(inward)
    }
    const one = { direction: 'in', edge_type: 'b', limit: '11' }
    expect(await edgesOf(server, hub, one)).toEqual(inward.slice(30))
  })

  it('leave out agents that a limited key does not reach, and still fill their pages', async () => {
    const names = await agents(12)
    const [hub = '', ...others] = names
    for (const other of others) await add(other, hub)
    const seen = others.filter((_other, place) => place % 3 === 0).toSorted()
    const { key } = await scopedKey(server, ['records:read'], [hub, ...seen])
    const path = `GET /v1/graph/edges/${hub}?direction=in&limit=2`
    const first = await checkedCall(server, path, { key })
    expect(first.body.edges.map(({ src }: { src: string }) => src)).toEqual(seen.slice(0, 2))
    const second = await checkedCall(server, `${path}&cursor=${first.body.next_cursor}`, { key })
    expect(second.body).toMatchObject({ edges: [{ src: seen[2] }, { src: seen[3] }], next_cursor: null })
    const { body } = await checkedCall(server, `GET /v1/graph/traverse/${hub}`, { key })
    expect(body).toEqual({ nodes: [hub], edges: [], truncated: false })
  })

  it('are shown as of a time in any of three formats', async () => {
    const [a = '', b = '', c = ''] = await agents(3)
    const first = (await add(a, b, 'likes', 1)).body.timestamp_hlc
    // The clock of the next edge has a later millisecond: reads take longer than that, or are repeated.
    const ms = Number.parseInt(first.slice(0, 12), 16)
    while (Date.now() <= ms + 1) await headOf(server, a)
    await add(a, b, 'likes', 2)
    await add(a, c)
    await remove(a, b)
    for (const asOf of [first, String(ms), new Date(ms).toISOString()]) {
      expect(await edgesOf(server, a, { as_of: asOf })).toEqual([`${a} likes ${b} 1`])
      expect(await edgesOf(server, b, { as_of: asOf, direction: 'in' })).toEqual([`${a} likes ${b} 1`])
      expect(await traverse(a, { as_of: asOf, depth: '3' })).toMatchObject({ nodes: [a, b] })
    }
    expect(await edgesOf(server, a, { as_of: '0' })).toEqual([])
    expect(await edgesOf(server, a)).toEqual([`${a} likes ${c} 1`])
    expect(await edgesOf(server, a, { as_of: '2999-01-01' })).toEqual([`${a} likes ${c} 1`])
  })

  it('answer 404 for a missing agent, and 400 for invalid parameters', async () => {
    for (const direction of ['in', 'out']) {
      const absent = await checkedCall(server, `GET /v1/graph/edges/absent?direction=${direction}`)
      expect(codeOf(absent)).toEqual([404, 'agent_not_found'])
    }
    const strange = Buffer.from(JSON.stringify(['edges out', 'a b', 'x'])).toString('base64url')
    for (const query of [
      'direction=both',
      'limit=0',
      'limit=1001',
      'cursor=x',
      `cursor=${strange}`,
      'edge_type=',
      'as_of=yesterday',
      'as_of=20270101',
    ]) {
      const refused = await checkedCall(server, `GET /v1/graph/edges/default?${query}`)
      expect(codeOf(refused), query).toEqual([400, 'validation_failed'])
    }
  })
})

describe('a traversal', () => {
  it('follows outbound edges across shards, one step per depth, through cycles', async () => {
    const [a = '', b = '', c = '', d = '', e = ''] = await agents(5)
    const links: Link[] = [
      [a, b],
      [b, c],
      [c, a],
      [c, d],
      [d, e],
      [e, a],
      [a, a],
    ]
    for (const link of links) await addEdge(server, link)
    const one = [`${a} likes ${a} 1`, `${a} likes ${b} 1`]
    expect(await traverse(a)).toEqual({ nodes: [a, b], edges: one, truncated: false })
    expect(await traverse(a, { depth: '2' })).toMatchObject({ nodes: [a, b, c] })
    const all = await traverse(a, { depth: '3' })
    expect(all).toEqual({
      nodes: [a, b, c, d],
      edges: [...one, `${b} likes ${c} 1`, `${c} likes ${a} 1`, `${c} likes ${d} 1`],
      truncated: false,
    })
  })

  it('follows only edges of a named type', async () => {
    const [a = '', b = '', c = ''] = await agents(3)
    const links: Link[] = [
      [a, b, 'x'],
      [b, c, 'y'],
      [a, c, 'y'],
    ]
    for (const link of links) await addEdge(server, link)
    expect(await traverse(a, { depth: '3', edge_type: 'y' })).toMatchObject({ nodes: [a, c] })
    expect(await traverse(a, { depth: '3', edge_type: 'z' })).toMatchObject({ nodes: [a], edges: [] })
  })

  it('answers 400 for a depth outside 1 to 3, and 404 for a missing agent', async () => {
    for (const depth of ['0', '4', '-1', '1.5', 'deep', '']) {
      const refused = await checkedCall(server, `GET /v1/graph/traverse/default?depth=${depth}`)
      expect(codeOf(refused), depth).toEqual([400, 'validation_failed'])
    }
    expect(codeOf(await checkedCall(server, 'GET /v1/graph/traverse/absent'))).toEqual([
      404,
      'agent_not_found',
    ])
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(graphRoutes)).toEqual([])
})
