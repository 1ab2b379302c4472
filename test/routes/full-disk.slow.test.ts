import { afterAll, beforeAll, expect, it } from 'vitest'
import { newOrganism } from '../support/auth/organisms.js'
import { outcomeOf } from '../support/auth/accounts.js'
import { restartedFull } from '../support/auth/auth-cases.js'
import { ask, leavesUnchanged, newAgent } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { BeforeRestart } from '../support/server/before-restart.js'
import type { TestServer } from '../support/server/server.js'
import { addEdge, edgesOf, removeEdge, type Link } from '../support/shard/graph.js'

let server: TestServer
const before = new BeforeRestart()

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '3' } })
  await before.run()
  server = await restartedFull(server)
})
afterAll(() => server.stop())

it('readiness is answered 503, writes 507, and reads go on', async () => {
  expect((await ask(server, 'GET /healthz')).status).toBe(200)
  const ready = await ask(server, 'GET /readyz', { key: null })
  expect(ready.status).toBe(503)
  expect(ready.body.code).toBe('unavailable')
  const writes: [string, unknown][] = [
    ['POST /v1/agents', { name: 'a', zone: 'free' }],
    ['POST /v1/agents/default/records', { data: {} }],
    ['POST /v1/collections/c/records', { data: {} }],
    ['POST /v1/agents/default/records/batch', { records: [{ data: {} }] }],
    ['POST /v1/ingest/default', {}],
    [`DELETE /v1/agents/default/records/${'0'.repeat(64)}`, undefined],
    [`POST /v1/agents/default/records/${'0'.repeat(64)}/restore`, undefined],
    ['POST /v1/admin/api-keys', { name: 'k', scopes: ['ingest'] }],
  ]
  await leavesUnchanged(server, 'default', async () => {
    for (const [route, body] of writes) {
      const refused = await ask(server, route, { body })
      expect([route, refused.status, refused.body.code]).toEqual([route, 507, 'storage_full'])
    }
  })
  const read = await ask(server, 'POST /v1/agents/default/query', { body: { type: 'latest' } })
  expect(read.status).toBe(200)
  expect((await ask(server, 'GET /v1/strand/checkpoint')).status).toBe(200)
  expect((await ask(server, 'POST /v1/stream/tickets')).status).toBe(201)
})

const edge: Link = ['from', 'to']
before.add(async () => {
  for (const name of edge.slice(0, 2)) await newAgent(server, String(name))
  await addEdge(server, edge)
})

it('edges are read, and neither added nor removed', async () => {
  for (const act of [addEdge, removeEdge]) {
    const { status, body } = await leavesUnchanged(server, 'from', () => act(server, edge))
    expect([status, body.code]).toEqual([507, 'storage_full'])
  }
  expect(await edgesOf(server, 'from')).toEqual(['from likes to 1'])
})

const organism = before.add(async () => {
  await newOrganism(server, 'shown', { agents: ['notes'] })
  await newOrganism(server, 'plain', { auth: false })
  return (await ask(server, 'GET /v1/organisms/shown')).body
})

it('organisms are kept over the restart, and nothing is added to them', async () => {
  expect((await ask(server, 'GET /v1/organisms/shown')).body).toEqual(organism())
  for (const [route, body] of [
    ['POST /v1/organisms', { name: 'Full' }],
    ['POST /v1/organisms/shown/agents', { name: 'full', zone: 'free' }],
    ['POST /v1/organisms/plain/auth/init', undefined],
  ] as const) {
    expect(await outcomeOf(ask(server, route, { body })), route).toBe('507 storage_full')
  }
  expect((await ask(server, 'GET /v1/organisms/plain')).body.auth).toBe(false)
})
