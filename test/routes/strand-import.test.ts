import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { importRoute } from '../../src/front/routes/strand-import.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import {
  checkedCall,
  headOf,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { otlpJson, service } from '../support/http/otlp.js'
import { exportOf, fill, importedRecords, importTo, linesOf, sharedSeed } from '../support/shard/imports.js'
import { newOrganism } from '../support/auth/organisms.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { type TestServer } from '../support/server/server.js'

let source: TestServer
let target: TestServer

beforeAll(async () => {
  source = await startAuthServer({ env: { ...sharedSeed, SERVICE_SHARDS: '2' } })
  target = await startAuthServer({ env: { ...sharedSeed, SERVICE_SHARDS: '3', SERVICE_AGENT_ID: 'keeper' } })
  await newAgent(target, 'other')
})
afterAll(async () => {
  await source.stop()
  await target.stop()
})

/** A strand of numbers on the source. */
async function numbers(name: string, count = 10): Promise<string> {
  await newAgent(source, name)
  await fill(source, name, { from: 0, count })
  return name
}

const hold = { query: '?hold=true' }

/** The records of a strand that were imported; all if none were. */
const importedOf = async (server: TestServer, agent: string) => importedRecords(await exportOf(server, agent))

/** Checks the strand of an agent. @returns its records */
async function verified(server: TestServer, agent: string): Promise<number> {
  const result = await verifyExport(linesOf(await exportOf(server, agent)))
  if (!result.ok) throw new Error(result.reason)
  return result.records
}

describe('an import', () => {
  it('skips existing records, and reports it', async () => {
    const agent = await numbers('twice')
    const exported = await exportOf(source, agent)
    expect((await importTo(target, exported)).body).toMatchObject({ imported: 11, open: true })
    await fill(target, agent, { from: 10, count: 1 })
    await expectUnchanged(target, agent, async () => {
      const { status, body } = await importTo(target, exported)
      expect([status, body.imported, body.skipped]).toEqual([200, 0, 11])
      expect([body.first_seq, body.last_seq, body.record_count]).toEqual([null, null, 12])
    })
  })

  it('continues after an older export', async () => {
    const agent = await numbers('resumed')
    const older = await exportOf(source, agent)
    await fill(source, agent, { from: 10, count: 10, query: '?signing=group' })
    const newer = await exportOf(source, agent)
    await importTo(target, older, hold)
    expect((await importTo(target, newer, hold)).body).toMatchObject({
      imported: 10,
      skipped: 11,
      first_seq: 11,
      last_seq: 20,
      open: false,
    })
    expect(await importedOf(target, agent)).toEqual(importedRecords(newer))
    await fill(source, agent, { from: 20, count: 1 })
    const partial = await importTo(target, await exportOf(source, agent, '&from_seq=21'))
    expect(partial.body).toMatchObject({ imported: 1, skipped: 0, first_seq: 21, open: true })
    expect(await importedOf(target, agent)).toEqual(await importedOf(source, agent))
  })

  it('accepts a partial export that overlaps, and refuses one that leaves a gap', async () => {
    const agent = await numbers('gaps', 20)
    await importTo(target, await exportOf(source, agent, '&to_seq=5'), hold)
    const gap = await importTo(target, await exportOf(source, agent, '&from_seq=7'))
    expect([gap.status, gap.body.code, gap.body.seq]).toEqual([409, 'import_conflict', 6])
    const overlap = await importTo(target, await exportOf(source, agent, '&from_seq=3'))
    expect(overlap.body).toMatchObject({ imported: 15, skipped: 3, first_seq: 6, last_seq: 20 })
    expect(await importedOf(target, agent)).toEqual(await importedOf(source, agent))
    const none = await importTo(target, await exportOf(source, await numbers('none'), '&from_seq=1'))
    expect([none.status, none.body.code, none.body.seq]).toEqual([409, 'import_conflict', 0])
    expect(await headOf(target, 'none')).toBeUndefined()
  })

  it('accepts gzip', async () => {
    const agent = await numbers('zipped', 500)
    const exported = await exportOf(source, agent)
    const headers = { 'content-encoding': 'gzip' }
    const cut = await importTo(target, gzipSync(exported).subarray(0, 1_000), { headers })
    expect([cut.status, cut.body.code]).toEqual([400, 'validation_failed'])
    // With a byte order mark, as editors and PowerShell write files.
    const marked = gzipSync(`\ufeff${exported}`)
    expect((await importTo(target, marked, { headers })).body.imported).toBe(501)
    expect(await importedOf(target, agent)).toEqual(importedRecords(exported))
  })

  it('erases the body of a record that a later export marks as erased', async () => {
    const agent = await numbers('erased')
    const older = await exportOf(source, agent)
    const { records } = (
      await checkedCall(source, `POST /v1/agents/${agent}/query`, { body: { type: 'latest' } })
    ).body
    await checkedCall(source, `POST /v1/agents/${agent}/records/${records[0].record_id}/erase`)
    await importTo(target, older, hold)
    const shown = async () =>
      (await checkedCall(target, `GET /v1/agents/${agent}/records/${records[0].record_id}`)).body
    expect(await shown()).toMatchObject({ erased: false, payload: { n: 9 } })
    const newer = await exportOf(source, agent)
    expect((await importTo(target, newer, hold)).body.imported).toBe(1)
    expect(await shown()).toMatchObject({ erased: true, payload: null })
    expect(await importedOf(target, agent)).toEqual(importedRecords(newer))
    // Erased records stay erased, even if an older export has their body.
    expect((await importTo(target, older)).body).toMatchObject({ skipped: 11, open: false })
    expect(await importedOf(target, agent)).toEqual(importedRecords(newer))
    expect((await importTo(target, newer)).body.open).toBe(true)
    expect(await verified(target, agent)).toBe(13)
  })

  it('accepts a record without its body before the record of its erasure', async () => {
    const agent = await numbers('erased-before')
    const { records } = (
      await checkedCall(source, `POST /v1/agents/${agent}/query`, { body: { type: 'latest' } })
    ).body
    await checkedCall(source, `POST /v1/agents/${agent}/records/${records[0].record_id}/erase`)
    await importTo(target, await exportOf(source, agent, '&to_seq=10'), hold)
    expect((await importTo(target, await exportOf(source, agent))).body.imported).toBe(1)
    expect(await importedOf(target, agent)).toEqual(await importedOf(source, agent))
  })
})

describe('an imported edge', () => {
  it('can lead to a missing agent, and can still be traversed and removed', async () => {
    const agent = await numbers('pointing')
    await newAgent(source, 'elsewhere')
    const edge = { src: agent, dst: 'elsewhere', edge_type: 'feeds' }
    await checkedCall(source, 'POST /v1/graph/edges', { body: edge })
    await importTo(target, await exportOf(source, agent))
    const walked = await checkedCall(target, `GET /v1/graph/traverse/${agent}?depth=3`)
    expect([walked.status, walked.body]).toEqual([
      200,
      { nodes: [agent, 'elsewhere'], edges: [{ ...edge, weight: 1 }], truncated: false },
    ])
    expect((await checkedCall(target, 'GET /v1/graph/traverse/elsewhere?depth=1')).status).toBe(404)
    const removed = await checkedCall(
      target,
      `DELETE /v1/graph/edges?src=${agent}&edge_type=feeds&dst=elsewhere`,
    )
    expect(removed.status).toBe(200)
  })
})

describe('an import into a strand that takes writes', () => {
  it('is refused if it has a further record, also if the strand was created here', async () => {
    const agent = await numbers('grown')
    await importTo(target, await exportOf(source, agent))
    await fill(source, agent, { from: 10, count: 1 })
    const own = await newAgent(target, 'own')
    const before = await exportOf(target, own)
    await fill(target, own, { from: 0, count: 2 })
    const newer = await exportOf(target, own)
    await expectUnchanged(target, agent, async () => {
      for (const query of ['', '&from_seq=11']) {
        const { status, body } = await importTo(target, await exportOf(source, agent, query))
        expect([status, body.code, body.seq]).toEqual([409, 'import_conflict', 11])
      }
    })
    // A backup of the target, before the last two records.
    const older = await startAuthServer({ env: sharedSeed })
    try {
      expect((await importTo(older, before, hold)).body.open).toBe(false)
      expect((await importTo(older, before)).body.open).toBe(true)
      const refused = await expectUnchanged(older, own, () => importTo(older, newer))
      expect([refused.status, refused.body.code]).toEqual([409, 'import_conflict'])
    } finally {
      await older.stop()
    }
  })
})

describe('an import of a fork', () => {
  it('is refused with the seq of the fork, and changes nothing', async () => {
    const agent = await numbers('forked')
    await importTo(target, await exportOf(source, agent))
    await fill(source, agent, { from: 10, count: 5 })
    await fill(target, agent, { from: 20, count: 2 })
    await expectUnchanged(target, agent, async () => {
      for (const query of ['', '&from_seq=11', '&from_seq=12', '&from_seq=13']) {
        const { status, body } = await importTo(target, await exportOf(source, agent, query))
        const seq = query === '&from_seq=12' ? 12 : query === '&from_seq=13' ? 13 : 11
        expect([query, status, body.code, body.seq]).toEqual([query, 409, 'import_conflict', seq])
      }
    })
  })

  it('is refused for another strand with the same name', async () => {
    const agent = await numbers('taken')
    await newAgent(target, agent)
    await expectUnchanged(target, agent, async () => {
      const { status, body } = await importTo(target, await exportOf(source, agent))
      expect([status, body.code]).toEqual([409, 'agent_exists'])
    })
  })
})

describe('a key that the server cannot sign with', () => {
  it('blocks writes of the agent until its seed is sent', async () => {
    const agent = await numbers('keyless')
    await checkedCall(source, `POST /v1/agents/${agent}/rotate-key`, { body: { seed_hex: '11'.repeat(32) } })
    const exported = await exportOf(source, agent)
    const unknown = await importTo(target, exported)
    expect([unknown.status, unknown.body.code, unknown.body.imported]).toEqual([422, 'import_rejected', 0])
    expect(await headOf(target, agent)).toBeUndefined()
    expect((await importTo(target, exported, hold)).body.open).toBe(false)
    const refused = await importTo(target, exported)
    expect([refused.status, refused.body.code, refused.body.skipped]).toEqual([422, 'import_rejected', 0])
    const { body: status } = await checkedCall(source, `GET /v1/agents/${agent}/status`)
    expect(refused.body.public_key).toBe(status.public_key)
    const wrong = { headers: { 'strandfast-agent-seed': '22'.repeat(32) } }
    expect((await importTo(target, exported, wrong)).status).toBe(422)
    await expectUnchanged(target, agent, async () => {
      const path = `/v1/agents/${agent}`
      const { body } = await checkedCall(target, `POST ${path}/query`, { body: { type: 'latest' } })
      const hash = body.records[0].record_id
      for (const [route, given] of [
        [`POST ${path}/records`, { data: { n: 1 } }],
        [`POST /v1/collections/${agent}/records`, { data: { n: 1 } }],
        [`POST ${path}/records/batch`, { records: [{ data: { n: 1 } }] }],
        [`POST /v1/ingest/${agent}`, { n: 1 }],
        [`DELETE ${path}/records/${hash}`, undefined],
        [`POST ${path}/records/${hash}/erase`, undefined],
        [`PUT ${path}/zone`, { zone: 'protected' }],
        [`PUT ${path}/policies`, { policies: [] }],
        [`POST ${path}/rotate-key`, {}],
        ['POST /v1/graph/edges', { src: agent, dst: 'other', edge_type: 'feeds' }],
        ['GET /v1/strand/checkpoint?agent=keyless', undefined],
        [`GET /v1/strand/proof?agent=keyless&hash=${hash}`, undefined],
      ] as const) {
        const answer = await checkedCall(target, route, given === undefined ? {} : { body: given })
        expect([route, answer.status, answer.body.code]).toEqual([route, 409, 'import_open'])
      }
      const lines = await checkedCall(target, `POST /v1/ingest/${agent}`, {
        raw: '{"n":1}\n',
        headers: { 'content-type': 'application/x-ndjson' },
      })
      expect(lines.body).toMatchObject({ accepted: 0, errors: [{ line: 1, code: 'import_open' }] })
      // Exporters of OTLP repeat a request only after 503.
      const request = otlpJson('logs', [{ resource: service(agent), records: [{ flags: 1 }] }])
      const logs = await checkedCall(target, 'POST /v1/logs', { body: request })
      expect([logs.status, logs.body.code]).toEqual([503, 'import_open'])
    })
    expect(await verified(target, agent)).toBe(12)
    const asOf = await checkedCall(target, `GET /v1/strand/as-of?agent=${agent}&ts=${Date.now()}`)
    expect([asOf.status, asOf.body.checkpoint]).toEqual([200, null])
    const right = { headers: { 'strandfast-agent-seed': '11'.repeat(32) } }
    const opened = await importTo(target, exported, right)
    expect([opened.status, opened.body.open, opened.body.skipped]).toEqual([200, true, 12])
    await fill(target, agent, { from: 10, count: 1 })
    expect(await verified(target, agent)).toBe(14)
  })

  it('is refused if it belongs to another agent', async () => {
    const seed = '33'.repeat(32)
    await checkedCall(source, 'POST /v1/agents', { body: { name: 'mine', zone: 'free', seed_hex: seed } })
    await checkedCall(target, 'POST /v1/agents', { body: { name: 'theirs', zone: 'free', seed_hex: seed } })
    const headers = { 'strandfast-agent-seed': seed }
    const { status, body } = await importTo(target, await exportOf(source, 'mine'), { headers })
    expect([status, body.code]).toEqual([409, 'key_in_use'])
  })
})

describe('agents that the server creates', () => {
  it('are refused if they are the default agent here, or the server itself', async () => {
    for (const agent of ['keeper', 'server::audit', 'server::log']) {
      const exported = await exportOf(target, agent)
      const refused = await importTo(target, exported)
      expect([agent, refused.status, refused.body.code]).toEqual([agent, 403, 'forbidden'])
    }
  })

  it('are imported into an organism once it exists', async () => {
    await newOrganism(source, 'acme', { agents: ['notes'] })
    await fill(source, 'acme::notes', { from: 0, count: 3 })
    const notes = await exportOf(source, 'acme::notes')
    const early = await importTo(target, notes)
    expect([early.status, early.body.code]).toEqual([404, 'organism_not_found'])
    await newOrganism(target, 'acme', { auth: false })
    expect((await importTo(target, notes)).status).toBe(200)
  })

  it('are refused if they are an auth namespace', async () => {
    const auth = await exportOf(source, 'acme::auth')
    const early = await importTo(target, auth)
    expect([early.status, early.body.code]).toEqual([403, 'forbidden'])
    expect((await checkedCall(target, 'POST /v1/organisms/acme/auth/init')).status).toBe(201)
    const other = await expectUnchanged(target, 'acme::auth', () => importTo(target, auth))
    expect([other.status, other.body.code]).toEqual([403, 'forbidden'])
  })
})

describe('permission to import', () => {
  it('requires agents:admin and reach of the agent, and for an organism its scope', async () => {
    const agent = await numbers('guarded')
    const exported = await exportOf(source, agent)
    expect((await importTo(target, exported, { key: null })).status).toBe(401)
    const writer = await scopedKey(target, ['records:write', 'ingest', 'records:read'])
    expect((await importTo(target, exported, { key: writer.key })).status).toBe(403)
    const elsewhere = await scopedKey(target, ['agents:admin'], ['else-*'])
    expect((await importTo(target, exported, { key: elsewhere.key })).body.code).toBe('forbidden')
    expect(await headOf(target, agent)).toBeUndefined()
    const admin = await scopedKey(target, ['agents:admin'])
    const part = await exportOf(source, agent, '&to_seq=4')
    expect((await importTo(target, part, { key: admin.key, query: '?hold=true' })).status).toBe(200)
    expect((await importTo(target, exported, { key: admin.key })).body.imported).toBe(6)
    const member = await exportOf(source, 'acme::notes')
    expect((await importTo(target, member, { key: admin.key })).status).toBe(403)
    const both = await scopedKey(target, ['agents:admin', 'admin:organisms'])
    expect((await importTo(target, member, { key: both.key })).status).toBe(200)
  })

  it('requires a valid request', async () => {
    const exported = await exportOf(source, 'guarded')
    for (const [call, status] of [
      [{ headers: { 'content-type': 'application/json' } }, 415],
      [{ headers: { 'content-encoding': 'br' } }, 415],
      [{ query: '?hold=yes' }, 400],
      [{ headers: { 'strandfast-agent-seed': 'xyz' } }, 400],
    ] as const) {
      expect((await importTo(target, exported, call)).status).toBe(status)
    }
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(target.stderr()).toBe('')
  expect(source.stderr()).toBe('')
  expect(untestedSuccesses([importRoute('keeper')])).toEqual([])
})

describe('the log of strand heads', () => {
  it('contains the head of an imported strand, whose clocks are in the past', async () => {
    const name = await numbers('logged')
    const answer = await importTo(target, await exportOf(source, name))
    expect(answer.status, answer.text).toBe(200)
    const proof = await checkedCall(target, `GET /v1/log/proof?agent=${name}`)
    expect(proof).toMatchObject({ status: 200, body: { size: 12, hash: answer.body.chain_head } })
  })
})
