import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../../src/proof/node/verify-export.js'
import { checkedCall, scopedKey } from '../../support/http/answers.js'
import { eventually } from '../../support/eventually.js'
import { exportOf, importTo } from '../../support/shard/imports.js'
import { auditRecords, auditStrand } from '../../support/server/audit-strand.js'
import { call, startServer, type TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '3', SERVICE_LOG_INTERVAL_SECS: '1' } })
})
afterAll(() => server.stop())

const auditLog = () => auditRecords(server)

describe('the audit strand', () => {
  it('records who created and deleted a key, but not the key, its hash or its name', async () => {
    const admin = await scopedKey(server, ['admin:*'])
    const made = await checkedCall(server, 'POST /v1/admin/api-keys', {
      key: admin.key,
      body: { name: 'gateway of Ann', scopes: ['ingest'], agents: ['a', 'b*'], expires_in_secs: 60 },
    })
    expect(made.status).toBe(201)
    await checkedCall(server, `DELETE /v1/admin/api-keys/${made.body.key_id}`)
    const about = (await auditLog()).filter(({ body }) => body.key_id === made.body.key_id)
    const facts = {
      key_id: made.body.key_id,
      scopes: ['ingest'],
      agents: ['a', 'b*'],
      made_by: admin.key_id,
      line: admin.key_id,
      expires_at_ms: made.body.expires_at_ms,
    }
    expect(about).toEqual([
      { type: 'sys/api_key', body: { change: 'made', principal: admin.key_id, ...facts } },
      { type: 'sys/api_key', body: { change: 'deleted', principal: 'root', ...facts } },
    ])
    const text = await exportOf(server, auditStrand)
    for (const secret of [made.body.key, made.body.key.slice(7), 'gateway of Ann', 'digest']) {
      expect(text).not.toContain(secret)
    }
  })

  it('records no refused requests', async () => {
    const before = await auditLog()
    const refused = await checkedCall(server, 'POST /v1/admin/api-keys', {
      body: { name: '', scopes: ['ingest'] },
    })
    expect(refused.status).toBe(400)
    expect((await checkedCall(server, 'DELETE /v1/admin/api-keys/key_none')).status).toBe(404)
    expect(await auditLog()).toEqual(before)
  })

  it('records a key once that is requested twice with one Idempotency-Key', async () => {
    const before = (await auditLog()).length
    const call = {
      body: { name: 'once', scopes: ['ingest'] },
      headers: { 'idempotency-key': 'audit-once' },
    }
    const first = await checkedCall(server, 'POST /v1/admin/api-keys', call)
    const second = await checkedCall(server, 'POST /v1/admin/api-keys', call)
    expect(second.body).toEqual(first.body)
    expect(await auditLog()).toHaveLength(before + 1)
  })

  it('is written only by the server, and readable only with unlimited admin keys', async () => {
    for (const route of [
      `POST /v1/agents/${auditStrand}/records`,
      `POST /v1/ingest/${auditStrand}`,
      `PUT /v1/agents/${auditStrand}/zone`,
      `POST /v1/agents/${auditStrand}/rotate-key`,
    ]) {
      const body = route.startsWith('PUT')
        ? { zone: 'free' }
        : route.endsWith('rotate-key')
          ? undefined
          : { data: {} }
      const refused = await call(server, route, body === undefined ? {} : { body })
      expect([route, refused.status]).toEqual([route, 403])
    }
    const keys = [
      await scopedKey(server, ['records:read', 'proposals:decide', 'admin:organisms', 'agents:admin']),
      await scopedKey(server, ['admin:*'], ['server::*', '*']),
    ]
    for (const { key } of keys) {
      for (const route of [
        `GET /v1/strand/export?agent=${auditStrand}`,
        `GET /v1/agents/${auditStrand}/status`,
        `GET /v1/agents/${auditStrand}/head`,
        `GET /v1/agents/${auditStrand}/stream`,
        `GET /v1/stream?agents=${auditStrand}`,
        `GET /v1/strand/checkpoint?agent=${auditStrand}`,
        `GET /v1/strand/as-of?agent=${auditStrand}&ts=1`,
        `GET /v1/log/proof?agent=${auditStrand}`,
        `GET /v1/graph/edges/${auditStrand}`,
        `GET /v1/proposals?agent=${auditStrand}`,
      ]) {
        expect([route, (await call(server, route, { key })).status]).toEqual([route, 403])
      }
    }
    const { agents, total } = (await checkedCall(server, 'GET /v1/agents?limit=1000')).body
    expect(agents).not.toContain(auditStrand)
    expect(total).toBe(agents.length)
    expect(await importTo(server, await exportOf(server, auditStrand))).toMatchObject({ status: 403 })
  })

  it('verifies, and is in the log of heads', async () => {
    const text = await exportOf(server, auditStrand)
    const { public_key: publicKey, zone } = (
      await checkedCall(server, `GET /v1/agents/${auditStrand}/status`)
    ).body
    expect(zone).toBe('immutable_core')
    expect(await verifyExport(text.trimEnd().split('\n'), { publicKey })).toMatchObject({ ok: true })
    await eventually(
      async () => (await call(server, `GET /v1/log/proof?agent=${auditStrand}`)).status === 200,
    )
  })
})
