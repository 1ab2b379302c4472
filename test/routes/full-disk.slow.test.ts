import { afterAll, beforeAll, expect, it } from 'vitest'
import { newOrganism } from '../support/auth/organisms.js'
import { outcomeOf } from '../support/auth/accounts.js'
import { restartWithFullDisk } from '../support/auth/auth-cases.js'
import { checkedCall, expectUnchanged, newAgent } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { BeforeRestart } from '../support/server/before-restart.js'
import type { TestServer } from '../support/server/server.js'
import { addEdge, edgesOf, removeEdge, type Link } from '../support/shard/graph.js'

let server: TestServer
const before = new BeforeRestart()

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '3' } })
  await before.run()
  server = await restartWithFullDisk(server)
})
afterAll(() => server.stop())

it('answers 503 to readiness, 507 to writes, and still serves reads', async () => {
  expect((await checkedCall(server, 'GET /healthz')).status).toBe(200)
  const ready = await checkedCall(server, 'GET /readyz', { key: null })
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
  await expectUnchanged(server, 'default', async () => {
    for (const [route, body] of writes) {
      const refused = await checkedCall(server, route, { body })
      expect([route, refused.status, refused.body.code]).toEqual([route, 507, 'storage_full'])
    }
  })
  const read = await checkedCall(server, 'POST /v1/agents/default/query', { body: { type: 'latest' } })
  expect(read.status).toBe(200)
  expect((await checkedCall(server, 'GET /v1/strand/checkpoint')).status).toBe(200)
  expect((await checkedCall(server, 'POST /v1/stream/tickets')).status).toBe(201)
})

it('answers OTLP with 503, which exporters repeat', async () => {
  for (const route of ['POST /v1/logs', 'POST /v1/traces', 'POST /v1/otlp/default/v1/logs']) {
    const refused = await checkedCall(server, route, { body: {} })
    expect([route, refused.status, refused.body.code]).toEqual([route, 503, 'storage_full'])
    expect(refused.headers.get('retry-after')).toBe('30')
  }
})

const edge: Link = ['from', 'to']
before.add(async () => {
  for (const name of edge.slice(0, 2)) await newAgent(server, String(name))
  await addEdge(server, edge)
})

it('reads edges, but neither adds nor removes them', async () => {
  for (const act of [addEdge, removeEdge]) {
    const { status, body } = await expectUnchanged(server, 'from', () => act(server, edge))
    expect([status, body.code]).toEqual([507, 'storage_full'])
  }
  expect(await edgesOf(server, 'from')).toEqual(['from likes to 1'])
})

const organism = before.add(async () => {
  await newOrganism(server, 'shown', { agents: ['notes'] })
  await newOrganism(server, 'plain', { auth: false })
  return (await checkedCall(server, 'GET /v1/organisms/shown')).body
})

it('keeps organisms across the restart, but adds nothing to them', async () => {
  expect((await checkedCall(server, 'GET /v1/organisms/shown')).body).toEqual(organism())
  for (const [route, body] of [
    ['POST /v1/organisms', { name: 'Full' }],
    ['POST /v1/organisms/shown/agents', { name: 'full', zone: 'free' }],
    ['POST /v1/organisms/plain/auth/init', undefined],
  ] as const) {
    expect(await outcomeOf(checkedCall(server, route, { body })), route).toBe('507 storage_full')
  }
  expect((await checkedCall(server, 'GET /v1/organisms/plain')).body.auth).toBe(false)
})
