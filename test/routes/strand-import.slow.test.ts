import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { eventually } from '../support/eventually.js'
import { checkedCall, headOf, newAgent, scopedKey } from '../support/http/answers.js'
import { startServer, type TestServer } from '../support/server/server.js'
import {
  everythingOf,
  exportOf,
  fill,
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
  /** Can decide on the target; older than all imported records. */
  let decider: string

  beforeAll(async () => {
    source = await startAuthServer({ env: { ...sharedSeed, SERVICE_SHARDS: '2' } })
    target = await startAuthServer({
      env: { ...sharedSeed, SERVICE_SHARDS: '3', SERVICE_AGENT_ID: 'keeper' },
    })
    ;({ key: decider } = await scopedKey(target, ['proposals:decide', 'records:read']))
  })
  afterAll(async () => {
    await source.stop()
    await target.stop()
  })

  const withSeed = { headers: { 'strandfast-agent-seed': rotatedSeed } }
  const seqs = (text: string): number => linesOf(text).length - 2

  it('restores the whole strand and its state, byte for byte', async () => {
    for (const server of [source, target]) await newAgent(server, 'other')
    await richStrand(source, 'rich', 'other')
    const exported = await exportOf(source, 'rich')
    const answer = await importTo(target, exported, withSeed)
    expect(answer.status, answer.text).toBe(200)
    const head = await headOf(source, 'rich')
    const last = seqs(exported) - 1
    expect(answer.body).toEqual({
      agent_id: 'rich',
      strand: expect.stringMatching(/^[0-9a-f]{64}$/),
      imported: last + 1,
      skipped: 0,
      first_seq: 0,
      last_seq: last,
      chain_head: head?.chain_head,
      record_count: last,
      open: true,
    })
    expect(await exportOf(target, 'rich')).toBe(exported)
    const imported = await everythingOf(target, 'rich')
    expect(imported).toEqual(await everythingOf(source, 'rich'))
    // Each record by its hash, with the state as of its clock, and more.
    expect(Object.keys(imported).length).toBeGreaterThanOrEqual(3 * last)
    const inbound = '/v1/graph/edges/other?direction=in'
    expect((await checkedCall(target, `GET ${inbound}`)).body).toEqual(
      (await checkedCall(source, `GET ${inbound}`)).body,
    )
  })

  it('lets the agent write, delete, rotate its key and be voted on, and its strand verifies', async () => {
    const before = await verified(target, 'rich')
    const [hash] = await fill(target, 'rich', { from: 100, count: 3, query: '?signing=group' })
    const proposed = await checkedCall(target, `DELETE /v1/agents/rich/records/${hash}`)
    expect(proposed.status).toBe(202)
    const open = await checkedCall(target, 'GET /v1/proposals?agent=rich&state=proposed')
    expect(open.body.proposals).toHaveLength(2)
    for (const { proposal_id: id } of open.body.proposals) {
      const approved = await checkedCall(target, `POST /v1/proposals/${id}/approve`, { key: decider })
      expect([approved.status, approved.body.state]).toEqual([200, 'applied'])
    }
    expect((await checkedCall(target, `GET /v1/agents/rich/records/${hash}`)).body.deleted).toBe(true)
    expect(await verified(target, 'rich')).toBe(before + 3 + 1 + 2 * 3)
  })

  it('the servers had nothing to log', () => {
    expect([source.stderr(), target.stderr()]).toEqual(['', ''])
  })
})

describe('proposals of an imported strand', () => {
  const env = { ...sharedSeed, SERVICE_SHARDS: '1', SERVICE_GOVERNED_AUTO_APPROVE_SECS: '1' }
  let from: TestServer
  let to: TestServer
  beforeAll(async () => {
    from = await startServer({ env })
    to = await startServer({ env })
  })
  afterAll(async () => {
    await from.stop()
    await to.stop()
  })

  const stateOf = async (server: TestServer, id: string): Promise<string | undefined> => {
    const { body } = await checkedCall(server, `GET /v1/proposals?agent=${id.replace(/^p_\d+_/, '')}`)
    return body.proposals.find((one: { proposal_id: string }) => one.proposal_id === id)?.state
  }
  const propose = async (server: TestServer, agent: string): Promise<string> => {
    await newAgent(server, agent, 'governed')
    const [hash] = await fill(server, agent, { from: 0, count: 3 })
    return (await checkedCall(server, `DELETE /v1/agents/${agent}/records/${hash}`)).body.proposal_id
  }
  const applied = (server: TestServer, id: string) =>
    eventually(async () => (await stateOf(server, id)) === 'applied')

  it('wait while the import is on hold, so that the rest of the strand still fits', async () => {
    const id = await propose(from, 'waiting')
    const part = await exportOf(from, 'waiting', '&to_seq=4')
    await applied(from, id)
    const held = await importTo(to, part, { query: '?hold=true' })
    expect([held.status, held.body.open]).toEqual([200, false])
    const vote = await checkedCall(to, `POST /v1/proposals/${id}/approve`)
    expect([vote.status, vote.body.code]).toEqual([409, 'import_open'])
    // A later proposal of another agent was applied, so the check for due proposals has passed this one.
    await applied(to, await propose(to, 'later'))
    expect(await stateOf(to, id)).toBe('proposed')
    const whole = await exportOf(from, 'waiting')
    const done = await importTo(to, whole)
    expect([done.status, done.body.open, done.body.imported]).toEqual([200, true, 2])
    expect(await exportOf(to, 'waiting')).toBe(whole)
    expect(await stateOf(to, id)).toBe('applied')
  })

  it('are applied when they are due, once the import has ended', async () => {
    const id = await propose(from, 'overdue')
    await importTo(to, await exportOf(from, 'overdue', '&to_seq=4'))
    await applied(to, id)
    expect(await verified(to, 'overdue')).toBe(7)
  })

  it('are rejected if they concern a key whose seed is not on the server', async () => {
    const key = await newAgent(from, 'rekeyed', 'protected')
    const { body } = await checkedCall(from, `POST /v1/agents/${key}/rotate-key`, { body: {} })
    const { key: older } = await scopedKey(to, ['proposals:decide'])
    await importTo(to, await exportOf(from, key))
    const { body: ended } = await checkedCall(to, `POST /v1/proposals/${body.proposal_id}/approve`, {
      key: older,
    })
    expect([ended.state, ended.reason]).toEqual(['rejected', 'seed_unknown'])
  })

  it('also wait in a strand that took writes, while its import continues', async () => {
    const id = await propose(from, 'renewed')
    await importTo(to, await exportOf(from, 'renewed', '&to_seq=3'))
    const rest = await exportOf(from, 'renewed', '&from_seq=4&to_seq=4')
    expect((await importTo(to, rest, { query: '?hold=true' })).body.open).toBe(false)
    await applied(to, await propose(to, 'during-hold'))
    expect(await stateOf(to, id)).toBe('proposed')
    await applied(from, id)
    expect((await importTo(to, await exportOf(from, 'renewed', '&from_seq=5'))).body.open).toBe(true)
    expect(await stateOf(to, id)).toBe('applied')
    expect(await exportOf(to, 'renewed')).toBe(await exportOf(from, 'renewed'))
  })
})
