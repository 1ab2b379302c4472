import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { logIn, register } from '../../support/auth/accounts.js'
import { signUp } from '../../support/auth/users.js'
import { eventually } from '../../support/eventually.js'
import { checkedCall, expectUnchanged, newAgent, scopedKey } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestAnswer, TestServer } from '../../support/server/server.js'

/*
 * Which proposals and approvals count after keys and users were deleted, and if one person could play both
 * roles.
 */

let server: TestServer
/** Keys that can decide, each of a separate lineage. The second one has admin:*. */
let decider: string
let admin: string

beforeAll(async () => {
  const env = { SERVICE_GOVERNED_AUTO_APPROVE_SECS: '3600', SERVICE_SHARDS: '2' }
  server = await startAuthServer({ env })
  ;({ key: decider } = await scopedKey(server, ['proposals:decide']))
  ;({ key: admin } = await scopedKey(server, ['admin:*']))
})
afterAll(() => server.stop())

const vote = (id: string, key?: string, decision = 'approve') =>
  checkedCall(server, `POST /v1/proposals/${id}/${decision}`, key === undefined ? {} : { key })
const codeOf = ({ status, body }: TestAnswer): [number, string] => [status, body.code]

async function proposalOf(id: string) {
  const { body } = await checkedCall(server, `GET /v1/proposals?agent=${id.replace(/^p_\d+_/, '')}`)
  return body.proposals.find((one: { proposal_id: string }) => one.proposal_id === id)
}

async function propose(agent: string, key: string): Promise<string> {
  const { body } = await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data: { n: 1 } } })
  const proposed = await checkedCall(server, `DELETE /v1/agents/${agent}/records/${body.id}`, { key })
  expect(proposed.status, proposed.text).toBe(202)
  return proposed.body.proposal_id
}

const editorsDelete = [
  {
    actions: ['read', 'delete'],
    conditions: [{ field: 'n', op: 'in', value: ['$jwt.app_metadata.may'] }],
  },
]

/** Replaces the policies of an agent in zone `protected`, with `key` and an approval of another lineage. */
async function setPolicies(agent: string, policies: object[], key = server.rootKey): Promise<void> {
  const { body } = await checkedCall(server, `PUT /v1/agents/${agent}/policies`, { key, body: { policies } })
  expect((await vote(body.proposal_id, decider)).body.state).toBe('applied')
}

const setMetadata = (email: string, metadata: object, key = server.rootKey) =>
  checkedCall(server, `PATCH /v1/auth/users/${email}/app-metadata`, { key, body: { metadata } })

describe('deleting a key', () => {
  it('cancels its proposals with a signed record', async () => {
    const agent = await newAgent(server, 'deleted-key', 'protected')
    const { key, key_id: keyId } = await scopedKey(server, ['records:delete'])
    const id = await propose(agent, key)
    const kept = await propose(agent, admin)
    expect((await checkedCall(server, `DELETE /v1/admin/api-keys/${keyId}`)).status).toBe(200)
    expect(await proposalOf(id)).toMatchObject({ state: 'cancelled', reason: 'proposer_ended' })
    expect(await proposalOf(kept)).toMatchObject({ state: 'proposed' })
    const { body: head } = await checkedCall(server, `GET /v1/agents/${agent}/head`)
    const { body: last } = await checkedCall(server, `GET /v1/agents/${agent}/records/${head.chain_head}`)
    expect(last).toMatchObject({
      type: 'sys/applied',
      payload: { state: 'cancelled', reason: 'proposer_ended' },
    })
    expect(codeOf(await vote(id, decider))).toEqual([409, 'proposal_closed'])
  })

  it('withdraws its approval, so that another one is needed', async () => {
    const agent = await newAgent(server, 'deleted-voter', 'immutable_core')
    const second = await scopedKey(server, ['admin:*'])
    const third = await scopedKey(server, ['admin:*'])
    const { body } = await checkedCall(server, `PUT /v1/agents/${agent}/zone`, { body: { zone: 'free' } })
    const id: string = body.proposal_id
    expect((await vote(id, second.key)).body.state).toBe('proposed')
    expect((await checkedCall(server, `DELETE /v1/admin/api-keys/${second.key_id}`)).status).toBe(200)
    const votes = [{ vote: 'approve' }, { vote: 'withdrawn', principal: second.key_id }]
    expect(await proposalOf(id)).toMatchObject({ state: 'proposed', votes })
    expect((await vote(id, third.key)).body.state).toBe('proposed')
    expect((await vote(id, admin)).body.state).toBe('applied')
  })
})

it('cancels the proposals of an expired key at the next approval', async () => {
  const agent = await newAgent(server, 'expired-key', 'protected')
  const made = await checkedCall(server, 'POST /v1/admin/api-keys', {
    body: { name: 'short', scopes: ['records:delete'], expires_in_secs: 1 },
  })
  const { key } = made.body
  const id = await propose(agent, key)
  await eventually(async () => (await checkedCall(server, 'GET /v1/whoami', { key })).status === 401)
  expect((await vote(id, decider)).body).toMatchObject({ state: 'cancelled', reason: 'proposer_ended' })
})

describe('a proposal of a user', () => {
  it('is cancelled when the user is deleted', async () => {
    const agent = await newAgent(server, 'deleted-user', 'protected')
    await setPolicies(agent, [{ actions: ['read', 'delete'], conditions: [] }])
    const id = await propose(agent, await signUp(server, 'gone@example.org'))
    expect((await checkedCall(server, 'DELETE /v1/auth/users/gone@example.org')).status).toBe(200)
    expect(await proposalOf(id)).toMatchObject({ state: 'cancelled', reason: 'proposer_ended' })
  })

  it('is not applied if its user may not do it any more', async () => {
    const agent = await newAgent(server, 'changed-user', 'protected')
    await setPolicies(agent, editorsDelete)
    const email = 'former@example.org'
    const token = await signUp(server, email, { app: { may: 1 } })
    const first = await propose(agent, token)
    expect((await setMetadata(email, {})).status).toBe(200)
    expect((await vote(first, decider)).body).toMatchObject({ state: 'rejected', reason: 'forbidden' })
    expect((await setMetadata(email, { may: 1 })).status).toBe(200)
    const second = await propose(agent, token)
    await setPolicies(agent, [])
    expect((await vote(second, decider)).body).toMatchObject({ state: 'rejected', reason: 'forbidden' })
  })

  it('cannot be approved by the lineage that last wrote the app_metadata of the user', async () => {
    const agent = await newAgent(server, 'own-metadata', 'protected')
    await setPolicies(agent, editorsDelete)
    const email = 'puppet@example.org'
    const account = await register(server, email)
    expect((await setMetadata(email, { may: 1 }, admin)).status).toBe(200)
    const id = await propose(agent, (await logIn(server, account)).token)
    expect(codeOf(await expectUnchanged(server, agent, () => vote(id, admin)))).toEqual([403, 'forbidden'])
    expect((await vote(id, decider)).body.state).toBe('applied')
  })

  it('cannot be approved by the lineage that created the account', async () => {
    const agent = await newAgent(server, 'own-account', 'protected')
    await setPolicies(agent, [{ actions: ['read', 'delete'], conditions: [] }])
    const body = { email: 'made@example.org', password: 'correct horse battery' }
    const made = await checkedCall(server, 'POST /v1/auth/register', { key: admin, body })
    expect(made.status, made.text).toBe(201)
    const id = await propose(agent, made.body.token)
    expect(codeOf(await expectUnchanged(server, agent, () => vote(id, admin)))).toEqual([403, 'forbidden'])
    expect((await vote(id, decider)).body.state).toBe('applied')
  })

  it('cannot be approved by a lineage that received a sign-in token of the account', async () => {
    const agent = await newAgent(server, 'entered-account', 'protected')
    await setPolicies(agent, [{ actions: ['read', 'delete'], conditions: [] }])
    const { email } = await register(server, 'entered@example.org')
    const { body: link } = await checkedCall(server, 'POST /v1/auth/magic-link/send', {
      key: admin,
      body: { email },
    })
    const entered = await checkedCall(server, 'POST /v1/auth/magic-link/verify', {
      key: null,
      body: { token: link.token },
    })
    const id = await propose(agent, entered.body.token)
    expect(codeOf(await expectUnchanged(server, agent, () => vote(id, admin)))).toEqual([403, 'forbidden'])
    expect((await vote(id, decider)).body.state).toBe('applied')
  })

  it('cannot be approved by the lineage that wrote the policies, including the root key if other admins exist', async () => {
    const agent = await newAgent(server, 'own-policies', 'protected')
    const everything = [{ actions: ['read', 'delete'], conditions: [] }]
    await setPolicies(agent, everything, admin)
    const token = await signUp(server, 'guided@example.org')
    const first = await propose(agent, token)
    expect(codeOf(await expectUnchanged(server, agent, () => vote(first, admin)))).toEqual([403, 'forbidden'])
    expect((await vote(first)).body.state).toBe('applied')
    await setPolicies(agent, everything)
    const second = await propose(agent, token)
    expect(codeOf(await expectUnchanged(server, agent, () => vote(second)))).toEqual([403, 'forbidden'])
    expect((await vote(second, admin)).body.state).toBe('applied')
  })
})

it('logs nothing', () => {
  expect(server.stderr()).toBe('')
})
