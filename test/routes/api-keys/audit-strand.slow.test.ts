import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkedCall, newAgent, scopedKey } from '../../support/http/answers.js'
import { auditRecords, auditStrand } from '../../support/server/audit-strand.js'
import { startServer, type TestServer } from '../../support/server/server.js'
import { exportOf, fill, importTo } from '../../support/shard/imports.js'

let server: TestServer
let source: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '3' } })
  source = await startServer()
})
afterAll(async () => {
  await server.stop()
  await source.stop()
})

it('records an import before it changes anything and when it has ended', async () => {
  await newAgent(source, 'brought')
  await fill(source, 'brought', { from: 0, count: 3 })
  const text = await exportOf(source, 'brought')
  const seed = { 'strandfast-agent-seed': '4c'.repeat(32) }
  const before = (await auditRecords(server)).length
  const broken = text.replaceAll(String.raw`{\"n\":1}`, String.raw`{\"n\":7}`)
  expect((await importTo(server, broken)).status).toBe(422)
  expect(await auditRecords(server)).toHaveLength(before)
  const importer = await scopedKey(server, ['agents:admin'])
  const { key } = importer
  const refused = await importTo(server, text, { key, headers: seed })
  expect([refused.status, refused.body.code]).toEqual([422, 'import_rejected'])
  // Without the seed of its last key, nothing is imported.
  expect(await auditRecords(server)).toHaveLength(before + 1)
  expect((await importTo(server, text, { key, query: '?hold=true' })).status).toBe(200)
  const about = (await auditRecords(server)).slice(before + 1)
  const strand = JSON.parse(text.split('\n')[0] ?? '').strand
  const facts = { agent: 'brought', strand, principal: importer.key_id, from_seq: 0, to_seq: 3 }
  const { seq } = (await checkedCall(server, `GET /v1/agents/${auditStrand}/head`)).body
  expect(about).toEqual([
    { type: 'sys/imported', body: { state: 'begun', ...facts } },
    {
      type: 'sys/imported',
      body: {
        state: 'ended',
        begun_seq: seq - 1,
        imported: 4,
        open: false,
        ...facts,
      },
    },
  ])
  // It contains nothing new, and the agent still takes no writes.
  expect((await importTo(server, text)).status).toBe(422)
  expect((await auditRecords(server)).slice(before + 1)).toHaveLength(2)
})

it('records another license at the first start with it', async () => {
  const env = { SERVICE_AUTH_ENABLED: 'true', SERVICE_LICENSE_KEY: 'none' }
  const dataDir = mkdtempSync(join(tmpdir(), 'strandfast-audit-'))
  for (let start = 0; start < 2; start++) {
    const one = await startServer({ dataDir, env })
    expect((await auditRecords(one)).filter(({ type }) => type === 'sys/license')).toEqual([
      {
        type: 'sys/license',
        body: { state: 'absent', licensee: null, expires_at_ms: null, features: [], authority: null },
      },
    ])
    await one.halt()
  }
  const other = { ...env, SERVICE_LICENSE_PUBLIC_KEY: 'ab'.repeat(32) }
  const one = await startServer({ dataDir, env: other })
  const licenses = (await auditRecords(one)).filter(({ type }) => type === 'sys/license')
  expect(licenses.map(({ body }) => body.state)).toEqual(['absent', 'invalid'])
  expect(JSON.stringify(licenses)).not.toContain('"none"')
  await one.stop()
})
