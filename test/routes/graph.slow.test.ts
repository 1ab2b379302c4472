import { afterAll, beforeAll, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { checkedCall } from '../support/http/answers.js'
import { startServer, type TestServer } from '../support/server/server.js'
import { addEdge, edgesOf, inSlices, makeAgents } from '../support/shard/graph.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '3' } })
})
afterAll(() => server.stop())

it('truncates a traversal at the limit of nodes, and reports it', async () => {
  const others = Array.from({ length: limits.graphNodesMax + 29 }, (_none, n) => `node-${n}`)
  await makeAgents(server, ['hub', ...others])
  await inSlices(others, async (other) => {
    expect((await addEdge(server, ['hub', other])).status).toBe(201)
  })
  const traverse = async () => (await checkedCall(server, 'GET /v1/graph/traverse/hub?depth=3')).body
  const found = await traverse()
  expect([found.nodes.length, found.truncated]).toEqual([limits.graphNodesMax, true])
  expect(new Set(found.nodes).size).toBe(limits.graphNodesMax)
  expect(found.edges).toHaveLength(limits.graphNodesMax - 1)
  expect(await traverse()).toEqual(found)
  expect(await edgesOf(server, 'hub', { limit: '1000' })).toHaveLength(others.length)
})

it('the server had nothing to log', () => {
  expect(server.stderr()).toBe('')
})
