import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../../src/proof/node/verify-export.js'
import { ask, newAgent, scopedKey } from '../../support/http/answers.js'
import { eventually } from '../../support/eventually.js'
import { exportOf, fill, importTo } from '../../support/shard/imports.js'
import { call, startServer, type TestServer } from '../../support/server/server.js'

const audit = 'server::audit'

let server: TestServer
let directory: string

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-audit-'))
  server = await startServer({
    dataDir: join(directory, 'data'),
    env: { SERVICE_SHARDS: '3', SERVICE_LOG_INTERVAL_SECS: '1' },
  })
})
afterAll(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

interface Told {
  type: string
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any
}

/** What the audit strand tells, without its genesis. */
async function told(on: TestServer = server): Promise<Told[]> {
  const { records } = (
    await ask(on, `POST /v1/agents/${audit}/query`, {
      body: { type: 'latest', order: 'asc', limit: 1_000, types: ['sys/*'] },
    })
  ).body
  return records
    .map(({ type, payload }: { type: string; payload: unknown }) => ({ type, body: payload }))
    .filter(({ type }: Told) => type !== 'sys/genesis')
}

describe('the audit strand', () => {
  it('tells who made a key and who deleted it, and neither the key, its hash nor its name', async () => {
    const admin = await scopedKey(server, ['admin:*'])
    const made = await ask(server, 'POST /v1/admin/api-keys', {
      key: admin.key,
      body: { name: 'gateway of Ann', scopes: ['ingest'], agents: ['a', 'b*'], expires_in_secs: 60 },
    })
    expect(made.status).toBe(201)
    await ask(server, `DELETE /v1/admin/api-keys/${made.body.key_id}`)
    const about = (await told()).filter(({ body }) => body.key_id === made.body.key_id)
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
    const text = await exportOf(server, audit)
    for (const secret of [made.body.key, made.body.key.slice(7), 'gateway of Ann', 'digest']) {
      expect(text).not.toContain(secret)
    }
  })

  it('tells nothing of what was refused', async () => {
    const before = await told()
    const refused = await ask(server, 'POST /v1/admin/api-keys', { body: { name: '', scopes: ['ingest'] } })
    expect(refused.status).toBe(400)
    expect((await ask(server, 'DELETE /v1/admin/api-keys/key_none')).status).toBe(404)
    expect(await told()).toEqual(before)
  })

  it('tells once of a key that is asked for twice under one Idempotency-Key', async () => {
    const before = (await told()).length
    const call = {
      body: { name: 'once', scopes: ['ingest'] },
      headers: { 'idempotency-key': 'audit-once' },
    }
    const first = await ask(server, 'POST /v1/admin/api-keys', call)
    const second = await ask(server, 'POST /v1/admin/api-keys', call)
    expect(second.body).toEqual(first.body)
    expect(await told()).toHaveLength(before + 1)
  })

  it('tells of an import before it changes anything and when it has ended', async () => {
    const source = await startServer()
    try {
      await newAgent(source, 'brought')
      await fill(source, 'brought', { from: 0, count: 3 })
      const text = await exportOf(source, 'brought')
      const seed = { 'strandfast-agent-seed': '4c'.repeat(32) }
      const before = (await told()).length
      const broken = text.replaceAll(String.raw`{\"n\":1}`, String.raw`{\"n\":7}`)
      expect((await importTo(server, broken)).status).toBe(422)
      expect(await told()).toHaveLength(before)
      const importer = await scopedKey(server, ['agents:admin'])
      const refused = await importTo(server, text, { key: importer.key, headers: seed })
      expect([refused.status, refused.body.code]).toEqual([422, 'import_rejected'])
      const about = (await told()).slice(before + 1)
      const strand = JSON.parse(text.split('\n')[0] ?? '').strand
      const facts = { agent: 'brought', strand, principal: importer.key_id, from_seq: 0, to_seq: 3 }
      const { seq } = (await ask(server, `GET /v1/agents/${audit}/head`)).body
      expect(about).toEqual([
        { type: 'sys/imported', body: { state: 'begun', ...facts } },
        {
          type: 'sys/imported',
          body: {
            state: 'ended',
            begun_seq: seq - 1,
            imported: 4,
            open: false,
            code: 'import_rejected',
            ...facts,
          },
        },
      ])
      // Nothing new is in it, and the agent takes no writes still.
      expect((await importTo(server, text)).status).toBe(422)
      expect((await told()).slice(before + 1)).toHaveLength(2)
    } finally {
      await source.stop()
    }
  })

  it('is written by the server only, and read by admins that are not limited only', async () => {
    for (const route of [
      `POST /v1/agents/${audit}/records`,
      `POST /v1/ingest/${audit}`,
      `PUT /v1/agents/${audit}/zone`,
      `POST /v1/agents/${audit}/rotate-key`,
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
        `GET /v1/strand/export?agent=${audit}`,
        `GET /v1/agents/${audit}/status`,
        `GET /v1/agents/${audit}/head`,
        `GET /v1/agents/${audit}/stream`,
        `GET /v1/stream?agents=${audit}`,
        `GET /v1/strand/checkpoint?agent=${audit}`,
        `GET /v1/strand/as-of?agent=${audit}&ts=1`,
        `GET /v1/log/proof?agent=${audit}`,
        `GET /v1/graph/edges/${audit}`,
        `GET /v1/proposals?agent=${audit}`,
      ]) {
        expect([route, (await call(server, route, { key })).status]).toEqual([route, 403])
      }
    }
    const { agents, total } = (await ask(server, 'GET /v1/agents?limit=1000')).body
    expect(agents).not.toContain(audit)
    expect(total).toBe(agents.length)
    expect(await importTo(server, await exportOf(server, audit))).toMatchObject({ status: 403 })
  })

  it('verifies, and is told by the log of heads', async () => {
    const text = await exportOf(server, audit)
    const { public_key: publicKey, zone } = (await ask(server, `GET /v1/agents/${audit}/status`)).body
    expect(zone).toBe('immutable_core')
    expect(await verifyExport(text.trimEnd().split('\n'), { publicKey })).toMatchObject({ ok: true })
    await eventually(async () => (await call(server, `GET /v1/log/proof?agent=${audit}`)).status === 200)
  })

  it('tells of another license at the start that brings it', async () => {
    const env = { SERVICE_AUTH_ENABLED: 'true', SERVICE_LICENSE_KEY: 'none' }
    const dataDir = join(directory, 'licensed')
    for (let start = 0; start < 2; start++) {
      const one = await startServer({ dataDir, env })
      expect((await told(one)).filter(({ type }) => type === 'sys/license')).toEqual([
        {
          type: 'sys/license',
          body: { state: 'absent', licensee: null, expires_at_ms: null, features: [], authority: null },
        },
      ])
      await one.halt()
    }
    const other = { ...env, SERVICE_LICENSE_PUBLIC_KEY: 'ab'.repeat(32) }
    const one = await startServer({ dataDir, env: other })
    const licenses = (await told(one)).filter(({ type }) => type === 'sys/license')
    expect(licenses.map(({ body }) => body.state)).toEqual(['absent', 'invalid'])
    expect(JSON.stringify(licenses)).not.toContain('"none"')
    await one.halt()
  })
})
