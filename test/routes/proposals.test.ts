// @run through a standby
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encodeCursor } from '../../src/front/routes/parameters.js'
import { proposalRoutes } from '../../src/front/routes/proposals.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { verifyExport as verifyByClient } from '../../src/client/verify-export.js'
import { subjectOf, signUp } from '../support/auth/users.js'
import { startAuthServer } from '../support/server/auth-server.js'
import {
  checkedCall,
  headOf,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import type { TestAnswer, TestServer } from '../support/server/server.js'

let server: TestServer
/** Two keys that decide on proposals, and one that proposes. */
let decider: string
let deciderId: string
let writer: string
let writerId: string

beforeAll(async () => {
  const env = { SERVICE_GOVERNED_AUTO_APPROVE_SECS: '3600', SERVICE_SHARDS: '2' }
  server = await startAuthServer({ env })
  ;({ key: decider, key_id: deciderId } = await scopedKey(server, ['proposals:decide']))
  ;({ key: writer, key_id: writerId } = await scopedKey(server, ['records:delete', 'records:read']))
})
afterAll(() => server.stop())

async function write(agent: string, data: object = { n: 1 }): Promise<string> {
  return (await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data } })).body.id
}

/** Requests the deletion of a new record, and returns the id of the proposal. */
async function propose(agent: string, key = writer): Promise<{ id: string; hash: string }> {
  const hash = await write(agent)
  const { status, body } = await checkedCall(server, `DELETE /v1/agents/${agent}/records/${hash}`, { key })
  expect(status).toBe(202)
  return { id: body.proposal_id, hash }
}

const vote = (id: string, decision: string, key?: string) =>
  checkedCall(server, `POST /v1/proposals/${id}/${decision}`, key === undefined ? {} : { key })
const list = (query: string, key?: string) =>
  checkedCall(server, `GET /v1/proposals${query}`, key === undefined ? {} : { key })
const isDeleted = async (agent: string, hash: string): Promise<boolean> =>
  (await checkedCall(server, `GET /v1/agents/${agent}/records/${hash}`)).body.deleted
const codeOf = ({ status, body }: TestAnswer): [number, string] => [status, body.code]

describe('a proposal', () => {
  it('is applied by an approval of another principal, and the strand alone shows who requested and approved it, and when', async () => {
    const agent = await newAgent(server, 'audited', 'protected')
    const { id, hash } = await propose(agent)
    const waiting = (await list(`?agent=${agent}`)).body.proposals
    expect(waiting).toMatchObject([
      {
        proposal_id: id,
        agent,
        action: 'delete',
        target: hash,
        target_seq: 1,
        state: 'proposed',
        proposer: writerId,
        votes: [],
      },
    ])
    const approved = await vote(id, 'approve', decider)
    expect(approved.body).toMatchObject({
      proposal_id: id,
      state: 'applied',
      votes: [{ principal: deciderId, vote: 'approve' }],
    })
    expect(await isDeleted(agent, hash)).toBe(true)
    const { text } = await checkedCall(server, `GET /v1/strand/export?agent=${agent}`)
    const { public_key: publicKey } = (await checkedCall(server, `GET /v1/agents/${agent}/status`)).body
    expect(await verifyExport(text.trimEnd().split('\n'), { publicKey })).toMatchObject({
      ok: true,
      records: 6,
    })
    const records = text
      .trimEnd()
      .split('\n')
      .slice(1, -1)
      .map((line): { h: string; body: string } => JSON.parse(line))
      .map(({ h, body }) => ({ type: /^type (.*)$/m.exec(h)?.[1], ...JSON.parse(body) }))
    expect(records.slice(2)).toMatchObject([
      { type: 'sys/proposal', action: 'delete', target: hash, principal: writerId },
      { type: 'sys/vote', vote: 'approve', principal: deciderId, proposal_seq: 2 },
      { type: 'sys/tombstone', target: hash, principal: writerId, proposal_seq: 2 },
      { type: 'sys/applied', state: 'applied', proposal_seq: 2, effect_seq: 4 },
    ])
    expect(text).not.toContain(decider)
  })

  it('is rejected by one vote, and then closed', async () => {
    const agent = await newAgent(server, 'rejected', 'governed')
    const { id, hash } = await propose(agent)
    expect((await vote(id, 'reject', decider)).body).toMatchObject({ state: 'rejected', reason: null })
    const late = await expectUnchanged(server, agent, () => vote(id, 'approve', decider))
    expect([...codeOf(late), late.body.state]).toEqual([409, 'proposal_closed', 'rejected'])
    expect(await isDeleted(agent, hash)).toBe(false)
  })

  it('is cancelled only by its proposer or an admin key', async () => {
    const agent = await newAgent(server, 'cancelled', 'protected')
    const [first, second] = [await propose(agent), await propose(agent)]
    const { key: other } = await scopedKey(server, ['records:delete', 'proposals:decide'])
    expect(codeOf(await expectUnchanged(server, agent, () => vote(first.id, 'cancel', other)))).toEqual([
      403,
      'forbidden',
    ])
    expect((await vote(first.id, 'cancel', writer)).body.state).toBe('cancelled')
    expect((await vote(second.id, 'cancel')).body.state).toBe('cancelled')
  })

  it('needs two other admin keys in zone immutable_core', async () => {
    const agent = await newAgent(server, 'ledger', 'immutable_core')
    const admins = [await scopedKey(server, ['admin:*']), await scopedKey(server, ['admin:*'])]
    const proposed = await checkedCall(server, `PUT /v1/agents/${agent}/zone`, {
      body: { zone: 'protected' },
    })
    expect(proposed.status).toBe(202)
    const id = proposed.body.proposal_id
    const refusals = [await vote(id, 'approve'), await vote(id, 'approve', decider)]
    expect(refusals.map(codeOf)).toEqual([
      [403, 'forbidden'],
      [403, 'forbidden'],
    ])
    const [one, two] = admins.map(({ key }) => key)
    expect((await vote(id, 'approve', one)).body.state).toBe('proposed')
    expect(codeOf(await vote(id, 'approve', one))).toEqual([409, 'already_voted'])
    expect((await vote(id, 'approve', two)).body.state).toBe('applied')
    expect((await checkedCall(server, `GET /v1/agents/${agent}/status`)).body.zone).toBe('protected')
  })

  it('follows the row policies of its user, and only that user can withdraw it', async () => {
    const agent = await newAgent(server, 'users')
    const conditions = [{ field: 'owner', op: 'eq', value: '$jwt.sub' }]
    const policies = [{ actions: ['read', 'write', 'delete'], conditions }]
    expect(
      (await checkedCall(server, `PUT /v1/agents/${agent}/policies`, { body: { policies } })).status,
    ).toBe(200)
    expect(
      (await checkedCall(server, `PUT /v1/agents/${agent}/zone`, { body: { zone: 'protected' } })).status,
    ).toBe(200)
    const [ann, bob] = [await signUp(server, 'ann@example.org'), await signUp(server, 'bob@example.org')]
    const hash = await write(agent, { owner: subjectOf(ann) })
    const refused = await expectUnchanged(server, agent, () =>
      checkedCall(server, `DELETE /v1/agents/${agent}/records/${hash}`, { key: bob }),
    )
    expect(refused.status).toBe(404)
    const erase = checkedCall(server, `POST /v1/agents/${agent}/records/${hash}/erase`, { key: ann })
    expect(codeOf(await erase)).toEqual([403, 'forbidden'])
    const proposed = await checkedCall(server, `DELETE /v1/agents/${agent}/records/${hash}`, { key: ann })
    expect(proposed.status).toBe(202)
    const id = proposed.body.proposal_id
    const [proposal] = (await list(`?agent=${agent}&state=proposed`)).body.proposals
    expect(proposal.proposer).toBe(`user::${subjectOf(ann)}`)
    expect(codeOf(await vote(id, 'approve', ann))).toEqual([403, 'forbidden'])
    expect(codeOf(await vote(id, 'cancel', bob))).toEqual([404, 'proposal_not_found'])
    expect((await vote(id, 'cancel', ann)).body.state).toBe('cancelled')
  })

  it('answers 404 for a missing proposal, and 400 for an invalid id', async () => {
    const agent = await newAgent(server, 'empty', 'protected')
    for (const decision of ['approve', 'reject', 'cancel']) {
      expect(codeOf(await vote(`p_7_${agent}`, decision))).toEqual([404, 'proposal_not_found'])
      expect(codeOf(await vote('p_7_absent', decision))).toEqual([404, 'proposal_not_found'])
      expect(codeOf(await vote(`p_${'9'.repeat(14)}_${agent}`, decision))).toEqual([
        404,
        'proposal_not_found',
      ])
      expect(codeOf(await vote(`p_${'9'.repeat(15)}_${agent}`, decision))).toEqual([400, 'validation_failed'])
      expect(codeOf(await vote('p_07_empty', decision))).toEqual([400, 'validation_failed'])
      expect(codeOf(await vote('p_7_...', decision))).toEqual([400, 'validation_failed'])
      const big = checkedCall(server, `POST /v1/proposals/p_7_${agent}/${decision}`, {
        raw: ' '.repeat(2_000),
      })
      expect(codeOf(await big)).toEqual([413, 'too_large'])
    }
    expect((await headOf(server, agent))?.seq).toBe(0)
  })

  it('is superseded by the erasure of its record, and supersedes no other proposal', async () => {
    const agent = await newAgent(server, 'superseded', 'governed')
    const { key: eraser } = await scopedKey(server, ['records:erase'])
    const { id, hash } = await propose(agent)
    const path = `/v1/agents/${agent}/records/${hash}`
    const proposed = await checkedCall(server, `POST ${path}/erase`, { key: eraser })
    expect(proposed.status).toBe(202)
    const { proposals } = (await list(`?agent=${agent}`)).body
    expect(proposals).toMatchObject([
      { proposal_id: id, action: 'delete', state: 'rejected', reason: 'superseded' },
      { proposal_id: proposed.body.proposal_id, action: 'erase', state: 'proposed' },
    ])
    for (const [route, key] of [
      [`DELETE ${path}`, writer],
      [`POST ${path}/erase`, eraser],
    ] as const) {
      const open = await expectUnchanged(server, agent, () => checkedCall(server, route, { key }))
      expect([...codeOf(open), open.body.proposal_id]).toEqual([
        409,
        'proposal_open',
        proposed.body.proposal_id,
      ])
    }
    expect((await vote(proposed.body.proposal_id, 'approve', decider)).body.state).toBe('applied')
    const [restored, waiting] = [await propose(agent), await propose(agent)]
    expect((await vote(restored.id, 'approve', decider)).body.state).toBe('applied')
    const restore = `POST /v1/agents/${agent}/records/${restored.hash}`
    expect((await checkedCall(server, `${restore}/restore`, { key: writer })).status).toBe(202)
    expect((await checkedCall(server, `${restore}/erase`, { key: eraser })).status).toBe(202)
    expect((await vote(waiting.id, 'cancel', writer)).body.state).toBe('cancelled')
  })

  it('accepts votes of keys with the scope that reach its agent', async () => {
    const agent = await newAgent(server, 'scoped', 'protected')
    const { id } = await propose(agent)
    const { key: elsewhere } = await scopedKey(server, ['proposals:decide', 'records:delete'], ['other'])
    for (const decision of ['approve', 'reject']) {
      for (const key of [writer, elsewhere]) {
        const refused = await expectUnchanged(server, agent, () => vote(id, decision, key))
        expect(codeOf(refused)).toEqual([403, 'forbidden'])
      }
      const anonymous = checkedCall(server, `POST /v1/proposals/${id}/${decision}`, { key: null })
      expect((await anonymous).status).toBe(401)
    }
    expect(codeOf(await vote(id, 'cancel', decider))).toEqual([403, 'forbidden'])
    expect((await vote(id, 'reject', decider)).status).toBe(200)
  })

  it('counts a vote once with its Idempotency-Key', async () => {
    const agent = await newAgent(server, 'keyed', 'protected')
    const { id } = await propose(agent)
    const call = { key: decider, headers: { 'idempotency-key': 'vote-once' } }
    const first = await checkedCall(server, `POST /v1/proposals/${id}/approve`, call)
    const second = await checkedCall(server, `POST /v1/proposals/${id}/approve`, call)
    expect(second.text).toBe(first.text)
    expect(second.headers.get('idempotency-replayed')).toBe('true')
    const other = checkedCall(server, `POST /v1/proposals/${id}/reject`, call)
    expect(codeOf(await other)).toEqual([422, 'idempotency_key_reused'])
  })
})

describe('the list of proposals', () => {
  it('lists all shards page by page, by state and by agent', async () => {
    const ids = new Set<string>()
    for (const name of ['list-a', 'list-b', 'list-c', 'list-d']) {
      const agent = await newAgent(server, name, 'protected')
      for (let n = 0; n < 3; n++) ids.add((await propose(agent)).id)
    }
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page: TestAnswer = await list(
        `?state=proposed&limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`,
      )
      expect(page.body.proposals.length).toBeLessThanOrEqual(2)
      for (const one of page.body.proposals) seen.push(one.proposal_id)
      cursor = page.body.next_cursor
    }
    expect(new Set(seen).size).toBe(seen.length)
    for (const id of ids) expect(seen).toContain(id)
    const own = await list('?agent=list-b&limit=3')
    expect(own.body.proposals.map((one: { agent: string }) => one.agent)).toEqual([
      'list-b',
      'list-b',
      'list-b',
    ])
    expect(own.body.next_cursor).toBeNull()
    expect((await list('?agent=list-b&state=applied')).body).toEqual({ proposals: [], next_cursor: null })
  })

  it('shows proposals of the named agent alone, whatever agent the cursor names', async () => {
    const agent = 'list-last'
    for (const name of ['list-one', 'list-two', 'list-three', agent]) {
      await propose(await newAgent(server, name, 'protected'))
    }
    const { key } = await scopedKey(server, ['proposals:decide'], [agent])
    for (const shard of [0, 1]) {
      for (let agentNo = 0; agentNo < 8; agentNo++) {
        const cursor = encodeCursor('proposals', [shard, agentNo, 1])
        const { status, body } = await list(`?agent=${agent}&cursor=${cursor}`, key)
        const agents: string[] = (body.proposals ?? []).map((one: { agent: string }) => one.agent)
        expect([status === 200 || status === 400, agents.filter((name) => name !== agent)]).toEqual([
          true,
          [],
        ])
      }
    }
  })

  it('refuses invalid parameters', async () => {
    for (const query of [
      '?state=gone',
      '?limit=0',
      '?limit=1001',
      '?agent=',
      '?cursor=x',
      ...[
        [99, 0, 0],
        [0, 2 ** 32, 0],
        [0, 0, 2 ** 48],
      ].map((place) => `?cursor=${encodeCursor('proposals', place)}`),
    ]) {
      expect(codeOf(await list(query))).toEqual([400, 'validation_failed'])
    }
    expect(codeOf(await list('?agent=absent'))).toEqual([404, 'agent_not_found'])
    expect(codeOf(await list('', writer))).toEqual([403, 'forbidden'])
    expect((await checkedCall(server, 'GET /v1/proposals', { key: null })).status).toBe(401)
    const { key } = await scopedKey(server, ['proposals:decide'], ['list-*'])
    expect(codeOf(await list('', key))).toEqual([403, 'forbidden'])
    expect(codeOf(await list('?agent=default', key))).toEqual([403, 'forbidden'])
    expect((await list('?agent=list-a', key)).body.proposals).toHaveLength(3)
  })
})

it('produces strands that both verifiers accept', async () => {
  for (const agent of ['ledger', 'rejected', 'users']) {
    const { text } = await checkedCall(server, `GET /v1/strand/export?agent=${agent}`)
    const { public_key: publicKey } = (await checkedCall(server, `GET /v1/agents/${agent}/status`)).body
    expect(await verifyExport(text.trimEnd().split('\n'), { publicKey })).toMatchObject({ ok: true })
    expect(await verifyByClient(text, { publicKey })).toMatchObject({ ok: true })
  }
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(proposalRoutes)).toEqual([])
})
