import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Scope } from '../../../src/wire/api-keys.js'
import { checkedCall, newAgent } from '../../support/http/answers.js'
import { exportOf } from '../../support/shard/imports.js'
import { startServer, type TestAnswer, type TestServer } from '../../support/server/server.js'

const audit = 'server::audit'
const all: Scope[] = ['records:read', 'records:delete', 'agents:admin', 'proposals:decide']

let server: TestServer
let createdKeys: string[] = []
let agents = 0

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

/** Admin keys of one test are deleted before the next. */
beforeEach(async () => {
  for (const keyId of createdKeys) await checkedCall(server, `DELETE /v1/admin/api-keys/${keyId}`)
  createdKeys = []
})

interface Key {
  key: string
  key_id: string
}

function createKey(scopes: Scope[], by?: Key, reach: string[] = []): Promise<TestAnswer> {
  const body = { name: 'one of a line', scopes, agents: reach }
  return checkedCall(server, 'POST /v1/admin/api-keys', { body, ...(by !== undefined && { key: by.key }) })
}

async function keyOf(scopes: Scope[], by?: Key): Promise<Key> {
  const { status, body } = await createKey(scopes, by)
  expect(status).toBe(201)
  createdKeys.push(body.key_id)
  return body
}

/** Creates a proposal about a new agent. @returns its id */
async function propose(by: Key | undefined, zone = 'protected'): Promise<string> {
  const agent = await newAgent(server, `lines-${agents++}`, zone)
  const { status, body } = await checkedCall(server, `PUT /v1/agents/${agent}/zone`, {
    body: { zone: 'free' },
    ...(by !== undefined && { key: by.key }),
  })
  expect(status).toBe(202)
  return body.proposal_id
}

async function approve(id: string, by?: Key): Promise<string> {
  const { status, body } = await checkedCall(server, `POST /v1/proposals/${id}/approve`, {
    ...(by !== undefined && { key: by.key }),
  })
  return status === 200 ? body.state : body.code
}

describe('an approval', () => {
  it('does not count from keys that the proposer created, their descendants, or the creators of the proposer', async () => {
    const admin = await keyOf(['admin:*'])
    const child = await keyOf(all, admin)
    const sibling = await keyOf(all, admin)
    for (const [proposer, others] of [
      [admin, [child, sibling]],
      [child, [admin, sibling]],
    ] as const) {
      const id = await propose(proposer)
      for (const other of others) expect(await approve(id, other)).toBe('forbidden')
      expect(await approve(id)).toBe('applied')
    }
    const text = await exportOf(server, `lines-${agents - 1}`)
    expect(text).toContain(String.raw`\"line\":\"${admin.key_id}\"`)
  })

  it('counts from a key of another lineage that is older than the proposal, also for the root key', async () => {
    const [one, other] = [await keyOf(all), await keyOf(all)]
    expect(await approve(await propose(one), other)).toBe('applied')
    const id = await propose(undefined)
    const younger = await keyOf(all)
    expect(await approve(id, younger)).toBe('forbidden')
    expect(await approve(id)).toBe('forbidden')
    expect(await approve(id, one)).toBe('applied')
  })

  it('counts once per lineage if two are needed', async () => {
    const admin = await keyOf(['admin:*'])
    const deputy = await keyOf(['admin:*'], admin)
    const id = await propose(undefined, 'immutable_core')
    expect(await approve(id, admin)).toBe('proposed')
    expect(await approve(id, admin)).toBe('already_voted')
    expect(await approve(id, deputy)).toBe('forbidden')
    const { body } = await checkedCall(server, `GET /v1/proposals?agent=lines-${agents - 1}`)
    expect(body.proposals[0]).toMatchObject({ line: 'root', votes: [{ line: admin.key_id }] })
  })

  it('can be refused by any key that can decide', async () => {
    const admin = await keyOf(['admin:*'])
    const child = await keyOf(all, admin)
    const rejected = await checkedCall(server, `POST /v1/proposals/${await propose(admin)}/reject`, {
      key: child.key,
    })
    expect(rejected.body.state).toBe('rejected')
  })
})

describe('a key that can decide, once two admin keys exist', () => {
  const whoIs = (key: string) =>
    checkedCall(server, 'GET /v1/whoami', { key: null, headers: { authorization: `Bearer ${key}` } })

  it.each([['admin:*'], ['proposals:decide']] as const)('is proposed: %s', async (scope) => {
    const [one, two] = [await keyOf(['admin:*']), await keyOf(['admin:*'])]
    for (const [proposer, approver] of [
      [one, two],
      [undefined, two],
      [one, undefined],
    ]) {
      const { status, body, text } = await createKey([scope], proposer)
      expect([status, body.state, body.effective_at_ms], text).toEqual([202, 'proposed', null])
      expect((await whoIs(body.key)).status).toBe(401)
      const { proposals } = (await checkedCall(server, `GET /v1/proposals?agent=${audit}&state=proposed`))
        .body
      expect(proposals).toMatchObject([
        {
          action: 'make_api_key',
          agent: audit,
          proposer: proposer?.key_id ?? 'root',
          change: { api_key: { key_id: body.key_id, scopes: [scope], agents: [] } },
        },
      ])
      expect(await approve(body.proposal_id, proposer)).toBe('forbidden')
      expect(await approve(body.proposal_id, approver)).toBe('applied')
      expect((await whoIs(body.key)).body).toMatchObject({
        principal: body.key_id,
        made_by: proposer?.key_id ?? 'root',
      })
      createdKeys.push(body.key_id)
      const exported = await exportOf(server, audit)
      expect(exported).not.toContain(body.key.slice(7))
      expect(exported).not.toContain('one of a line')
    }
  })

  it('is not created if the proposal is rejected, or its proposer was deleted', async () => {
    const [one, two] = [await keyOf(['admin:*']), await keyOf(['admin:*'])]
    const rejected = (await createKey(['admin:*'], one)).body
    await checkedCall(server, `POST /v1/proposals/${rejected.proposal_id}/reject`, { key: two.key })
    const orphan = (await createKey(['admin:*'], one)).body
    await checkedCall(server, `DELETE /v1/admin/api-keys/${one.key_id}`)
    expect(await approve(orphan.proposal_id, two)).toBe('proposal_closed')
    for (const { key } of [rejected, orphan]) expect((await whoIs(key)).status).toBe(401)
  })

  it('cannot be decided or seen by keys without admin:* or limited keys', async () => {
    const limited = (await createKey(['admin:*'], undefined, ['server::*', 'lines-*'])).body
    const decider = await keyOf(all)
    const one = await keyOf(['admin:*'])
    await keyOf(['admin:*'])
    createdKeys.push(limited.key_id)
    const { proposal_id: id } = (await createKey(['admin:*'], one)).body
    for (const key of [decider, limited]) {
      for (const how of ['approve', 'reject', 'cancel']) {
        const refused = await checkedCall(server, `POST /v1/proposals/${id}/${how}`, { key: key.key })
        expect(refused.body.code).toBe('forbidden')
      }
    }
    const { proposals } = (await checkedCall(server, 'GET /v1/proposals?limit=1000', { key: decider.key }))
      .body
    expect(proposals.map(({ agent }: { agent: string }) => agent)).not.toContain(audit)
    expect((await checkedCall(server, `POST /v1/proposals/${id}/cancel`, { key: one.key })).body.state).toBe(
      'cancelled',
    )
  })

  it('is answered with its current state for a repeated Idempotency-Key', async () => {
    const [one, two] = [await keyOf(['admin:*']), await keyOf(['admin:*'])]
    const options = {
      key: one.key,
      body: { name: 'one of a line', scopes: ['proposals:decide'] },
      headers: { 'idempotency-key': 'propose-once' },
    }
    const first = await checkedCall(server, 'POST /v1/admin/api-keys', options)
    expect(await approve(first.body.proposal_id, two)).toBe('applied')
    const second = await checkedCall(server, 'POST /v1/admin/api-keys', options)
    expect([second.status, second.text]).toEqual([202, first.text])
    expect((await whoIs(first.body.key)).status).toBe(200)
    createdKeys.push(first.body.key_id)
  })

  it('is created immediately if one of the two was deleted, and so is a key that cannot decide', async () => {
    const [one, two] = [await keyOf(['admin:*']), await keyOf(['admin:*'])]
    await keyOf(['records:read', 'agents:admin'], one)
    await checkedCall(server, `DELETE /v1/admin/api-keys/${two.key_id}`)
    await keyOf(['proposals:decide'], one)
  })
})
