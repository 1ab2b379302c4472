import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { checkedCall, headOf, newAgent, scopedKey } from '../support/http/answers.js'
import { startServer, type TestServer } from '../support/server/server.js'
import {
  everythingOf,
  exportOf,
  fill,
  importedRecords,
  importTo,
  linesOf,
  richStrand,
  rotatedSeed,
  sharedSeed,
} from '../support/shard/imports.js'

/** Checks the strand of an agent. @returns its records */
async function verified(server: TestServer, agent: string): Promise<number> {
  const result = await verifyExport(linesOf(await exportOf(server, agent)))
  if (!result.ok) throw new Error(result.reason)
  return result.records
}

describe('an import of a strand with every kind of record', () => {
  let source: TestServer
  let target: TestServer
  let third: TestServer
  /** Can decide on the target; older than all imported records. */
  let decider: string

  beforeAll(async () => {
    source = await startAuthServer({ env: { ...sharedSeed, SERVICE_SHARDS: '2' } })
    target = await startAuthServer({
      env: { ...sharedSeed, SERVICE_SHARDS: '3', SERVICE_AGENT_ID: 'keeper' },
    })
    third = await startServer({ env: { SERVICE_SHARDS: '1' } })
    ;({ key: decider } = await scopedKey(target, ['proposals:decide', 'records:read']))
  })
  afterAll(async () => {
    for (const server of [source, target, third]) await server.stop()
  })

  const withSeed = { headers: { 'strandfast-agent-seed': rotatedSeed } }
  const seqs = (text: string): number => linesOf(text).length - 2

  it('restores the whole strand, and its state except for proposals and policies', async () => {
    for (const server of [source, target]) await newAgent(server, 'other')
    await richStrand(source, 'rich', 'other')
    const exported = await exportOf(source, 'rich')
    const everything = await everythingOf(source, 'rich')
    const answer = await importTo(target, exported, withSeed)
    expect(answer.status, answer.text).toBe(200)
    const last = seqs(exported) - 1
    const head = await headOf(target, 'rich')
    expect(answer.body).toEqual({
      agent_id: 'rich',
      strand: expect.stringMatching(/^[0-9a-f]{64}$/),
      imported: last + 1,
      skipped: 0,
      first_seq: 0,
      last_seq: last,
      chain_head: head?.chain_head,
      record_count: last + 1,
      open: true,
    })
    expect(importedRecords(await exportOf(target, 'rich'))).toEqual(importedRecords(exported))
    const imported = await everythingOf(target, 'rich')
    // Each record by its hash, with the state as of its clock, and more.
    expect(Object.keys(imported).length).toBeGreaterThanOrEqual(3 * last)
    const asBefore = Object.keys(everything).filter((route) => /records|as.of|edges|traverse/.test(route))
    expect(asBefore.length).toBeGreaterThan(2 * last)
    for (const route of asBefore) expect([route, imported[route]]).toEqual([route, everything[route]])
    const inbound = '/v1/graph/edges/other?direction=in'
    expect((await checkedCall(target, `GET ${inbound}`)).body).toEqual(
      (await checkedCall(source, `GET ${inbound}`)).body,
    )
  })

  it('ends with a signed record, after which no policy and no proposal of the import has effect', async () => {
    const imported = seqs(await exportOf(source, 'rich'))
    const { body } = await checkedCall(target, 'GET /v1/agents/rich/status')
    expect([body.imported_records, body.zone, body.record_count]).toEqual([imported, 'protected', imported])
    const sys = { type: 'latest', limit: 1, types: ['sys/*'] }
    const { records } = (await checkedCall(target, 'POST /v1/agents/rich/query', { body: sys })).body
    expect(records).toMatchObject([
      {
        type: 'sys/imported',
        seq: imported,
        payload: { records: imported, head: records[0].parent_hash, principal: 'root' },
      },
    ])
    expect((await checkedCall(target, 'GET /v1/agents/rich/policies')).body.policies).toEqual([])
    expect((await checkedCall(target, 'GET /v1/proposals?agent=rich')).body.proposals).toEqual([])
    const open = (await checkedCall(source, 'GET /v1/proposals?agent=rich&state=proposed')).body.proposals
    expect(open).toHaveLength(1)
    const vote = await checkedCall(target, `POST /v1/proposals/${open[0].proposal_id}/approve`, {
      key: decider,
    })
    expect([vote.status, vote.body.code]).toEqual([404, 'proposal_not_found'])
  })

  it('lets the agent write, delete, rotate its key and be voted on, and its strand verifies', async () => {
    const before = await verified(target, 'rich')
    const [hash] = await fill(target, 'rich', { from: 100, count: 3, query: '?signing=group' })
    const proposed = await checkedCall(target, `DELETE /v1/agents/rich/records/${hash}`)
    expect(proposed.status).toBe(202)
    const approved = await checkedCall(target, `POST /v1/proposals/${proposed.body.proposal_id}/approve`, {
      key: decider,
    })
    expect([approved.status, approved.body.state]).toEqual([200, 'applied'])
    expect((await checkedCall(target, `GET /v1/agents/rich/records/${hash}`)).body.deleted).toBe(true)
    expect(await verified(target, 'rich')).toBe(before + 3 + 1 + 3)
  })

  it('is imported to a third server with the record of its first import, whose line names the importer', async () => {
    const { key, key_id: id } = await scopedKey(third, ['agents:admin'])
    expect((await importTo(third, await exportOf(target, 'rich'), { ...withSeed, key })).status).toBe(200)
    const lines = linesOf(await exportOf(third, 'rich'))
    const result = await verifyExport(lines)
    expect(result).toMatchObject({ ok: true, imported: lines.length - 3 })
    const sys = { type: 'latest', limit: 1, types: ['sys/imported'] }
    const { records } = (await checkedCall(third, 'POST /v1/agents/rich/query', { body: sys })).body
    expect(records[0].payload.principal).toBe(id)
  })

  it('the servers had nothing to log', () => {
    expect([source, target, third].map((server) => server.stderr())).toEqual(['', '', ''])
  })
})

it('an imported agent cannot become the default agent, whose strand has the sign-ins of the server', async () => {
  const source = await startServer({ env: { SERVICE_SHARDS: '1' } })
  const target = await startServer({ env: { SERVICE_SHARDS: '1', SERVICE_AGENT_ID: 'keeper' } })
  const { dataDir } = target
  try {
    const seed = { headers: { 'strandfast-agent-seed': 'c1'.repeat(32) } }
    const agent = { name: 'chosen', zone: 'free', seed_hex: 'c1'.repeat(32) }
    await checkedCall(source, 'POST /v1/agents', { body: agent })
    expect((await importTo(target, await exportOf(source, 'chosen'), seed)).status).toBe(200)
  } finally {
    await source.stop()
    await target.halt()
  }
  const start = startServer({ dataDir, env: { SERVICE_SHARDS: '1', SERVICE_AGENT_ID: 'chosen' } })
  await expect(start).rejects.toThrow('"chosen" was imported and cannot be the default agent')
  const again = await startServer({ dataDir, env: { SERVICE_SHARDS: '1', SERVICE_AGENT_ID: 'keeper' } })
  await again.stop()
})
