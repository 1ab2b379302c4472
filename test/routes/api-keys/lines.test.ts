import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Scope } from '../../../src/wire/api-keys.js'
import { ask, newAgent } from '../../support/http/answers.js'
import { exportOf } from '../../support/shard/imports.js'
import { startServer, type TestAnswer, type TestServer } from '../../support/server/server.js'

const audit = 'server::audit'
const all: Scope[] = ['records:read', 'records:delete', 'agents:admin', 'proposals:decide']

let server: TestServer
let made: string[] = []
let agents = 0

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

/** Admin keys of one test do not stay for the next. */
beforeEach(async () => {
  for (const keyId of made) await ask(server, `DELETE /v1/admin/api-keys/${keyId}`)
  made = []
})

interface Key {
  key: string
  key_id: string
}

function makeKey(scopes: Scope[], by?: Key, reach: string[] = []): Promise<TestAnswer> {
  const body = { name: 'one of a line', scopes, agents: reach }
  return ask(server, 'POST /v1/admin/api-keys', { body, ...(by !== undefined && { key: by.key }) })
}

async function keyOf(scopes: Scope[], by?: Key): Promise<Key> {
  const { status, body } = await makeKey(scopes, by)
  expect(status).toBe(201)
  made.push(body.key_id)
  return body
}

/** A proposal about a new agent; gives its id. */
async function propose(by: Key | undefined, zone = 'protected'): Promise<string> {
  const agent = await newAgent(server, `lines-${agents++}`, zone)
  const { status, body } = await ask(server, `PUT /v1/agents/${agent}/zone`, {
    body: { zone: 'free' },
    ...(by !== undefined && { key: by.key }),
  })
  expect(status).toBe(202)
  return body.proposal_id
}

async function approve(id: string, by?: Key): Promise<string> {
  const { status, body } = await ask(server, `POST /v1/proposals/${id}/approve`, {
    ...(by !== undefined && { key: by.key }),
  })
  return status === 200 ? body.state : body.code
}

describe('an approval', () => {
  it('does not count from keys that the proposer made, nor theirs, nor from the keys that made it', async () => {
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

  it('counts from a key of another line, for the root key too, where it is older than the proposal', async () => {
    const [one, other] = [await keyOf(all), await keyOf(all)]
    expect(await approve(await propose(one), other)).toBe('applied')
    const id = await propose(undefined)
    const younger = await keyOf(all)
    expect(await approve(id, younger)).toBe('forbidden')
    expect(await approve(id)).toBe('forbidden')
    expect(await approve(id, one)).toBe('applied')
  })

  it('counts once for each line where two are needed', async () => {
    const admin = await keyOf(['admin:*'])
    const deputy = await keyOf(['admin:*'], admin)
    const id = await propose(undefined, 'immutable_core')
    expect(await approve(id, admin)).toBe('proposed')
    expect(await approve(id, admin)).toBe('already_voted')
    expect(await approve(id, deputy)).toBe('forbidden')
    const { body } = await ask(server, `GET /v1/proposals?agent=lines-${agents - 1}`)
    expect(body.proposals[0]).toMatchObject({ line: 'root', votes: [{ line: admin.key_id }] })
  })

  it('leaves rejecting to anybody who may decide', async () => {
    const admin = await keyOf(['admin:*'])
    const child = await keyOf(all, admin)
    const rejected = await ask(server, `POST /v1/proposals/${await propose(admin)}/reject`, {
      key: child.key,
    })
    expect(rejected.body.state).toBe('rejected')
  })
})

describe('once two admin keys are there, a key that may decide', () => {
  const whoIs = (key: string) =>
    ask(server, 'GET /v1/whoami', { key: null, headers: { authorization: `Bearer ${key}` } })

  it.each([['admin:*'], ['proposals:decide']] as const)('is proposed: %s', async (scope) => {
    const [one, two] = [await keyOf(['admin:*']), await keyOf(['admin:*'])]
    for (const [proposer, approver] of [
      [one, two],
      [undefined, two],
      [one, undefined],
    ]) {
      const { status, body, text } = await makeKey([scope], proposer)
      expect([status, body.state, body.effective_at_ms], text).toEqual([202, 'proposed', null])
      expect((await whoIs(body.key)).status).toBe(401)
      const { proposals } = (await ask(server, `GET /v1/proposals?agent=${audit}&state=proposed`)).body
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
      made.push(body.key_id)
      const exported = await exportOf(server, audit)
      expect(exported).not.toContain(body.key.slice(7))
      expect(exported).not.toContain('one of a line')
    }
  })

  it('is not made where the proposal is rejected, or who proposed it is gone', async () => {
    const [one, two] = [await keyOf(['admin:*']), await keyOf(['admin:*'])]
    const rejected = (await makeKey(['admin:*'], one)).body
    await ask(server, `POST /v1/proposals/${rejected.proposal_id}/reject`, { key: two.key })
    const orphan = (await makeKey(['admin:*'], one)).body
    await ask(server, `DELETE /v1/admin/api-keys/${one.key_id}`)
    expect(await approve(orphan.proposal_id, two)).toBe('proposal_closed')
    for (const { key } of [rejected, orphan]) expect((await whoIs(key)).status).toBe(401)
  })

  it('is not decided about by keys without admin:*, or limited ones, which do not see it either', async () => {
    const limited = (await makeKey(['admin:*'], undefined, ['server::*', 'lines-*'])).body
    const decider = await keyOf(all)
    const one = await keyOf(['admin:*'])
    await keyOf(['admin:*'])
    made.push(limited.key_id)
    const { proposal_id: id } = (await makeKey(['admin:*'], one)).body
    for (const key of [decider, limited]) {
      for (const how of ['approve', 'reject', 'cancel']) {
        const refused = await ask(server, `POST /v1/proposals/${id}/${how}`, { key: key.key })
        expect(refused.body.code).toBe('forbidden')
      }
    }
    const { proposals } = (await ask(server, 'GET /v1/proposals?limit=1000', { key: decider.key })).body
    expect(proposals.map(({ agent }: { agent: string }) => agent)).not.toContain(audit)
    expect((await ask(server, `POST /v1/proposals/${id}/cancel`, { key: one.key })).body.state).toBe(
      'cancelled',
    )
  })

  it('is answered once under its Idempotency-Key, and as it is by then', async () => {
    const [one, two] = [await keyOf(['admin:*']), await keyOf(['admin:*'])]
    const options = {
      key: one.key,
      body: { name: 'one of a line', scopes: ['proposals:decide'] },
      headers: { 'idempotency-key': 'propose-once' },
    }
    const first = await ask(server, 'POST /v1/admin/api-keys', options)
    expect(await approve(first.body.proposal_id, two)).toBe('applied')
    const second = await ask(server, 'POST /v1/admin/api-keys', options)
    expect([second.status, second.text]).toEqual([202, first.text])
    expect((await whoIs(first.body.key)).status).toBe(200)
    made.push(first.body.key_id)
  })

  it('is made at once where one of the two has gone, and so is a key that decides nothing', async () => {
    const [one, two] = [await keyOf(['admin:*']), await keyOf(['admin:*'])]
    await keyOf(['records:read', 'agents:admin'], one)
    await ask(server, `DELETE /v1/admin/api-keys/${two.key_id}`)
    await keyOf(['proposals:decide'], one)
  })
})
