import { expect } from 'vitest'
import { agentActions, edgeActions, keyActions, recordActions } from '../../../src/strand/proposal.js'
import { checkedCall, newAgent, scopedKey } from '../http/answers.js'
import { auditStrand } from './audit-strand.js'
import type { TestServer } from './server.js'

/** A proposal, and the body of its signed record. */
export interface SignedProposal {
  id: string
  agent: string
  action: string
  body: Record<string, unknown>
}

/** One open proposal of each action, with every member that a record of it can have. */
export async function proposeEverything(server: TestServer): Promise<SignedProposal[]> {
  const call = (route: string, options: object = {}) => checkedCall(server, route, options)
  const admin = await scopedKey(server, ['admin:*'])
  await scopedKey(server, ['admin:*'])
  await newAgent(server, 'other')
  const proposed = new Map<string, string>()
  const propose = async (agent: string, route: string, options: object = {}): Promise<string> => {
    const { status, body, text } = await call(route, options)
    expect(status, `${route}: ${text}`).toBe(202)
    proposed.set(body.proposal_id, agent)
    return body.proposal_id
  }
  for (const action of ['delete', 'restore', 'erase', 'edge', 'agent'])
    await newAgent(server, `every-${action}`, 'protected')
  const hashOf = async (agent: string): Promise<string> =>
    (await call(`POST /v1/agents/${agent}/records`, { body: { data: { n: 1 } } })).body.id
  const record = async (agent: string) => `/v1/agents/${agent}/records/${await hashOf(agent)}`
  await propose('every-delete', `DELETE ${await record('every-delete')}`)
  await propose('every-erase', `POST ${await record('every-erase')}/erase`)
  const deleted = await record('every-restore')
  const id = await propose('every-restore', `DELETE ${deleted}`)
  expect((await call(`POST /v1/proposals/${id}/approve`, { key: admin.key })).body.state).toBe('applied')
  proposed.delete(id)
  await propose('every-restore', `POST ${deleted}/restore`)
  await call('POST /v1/graph/edges', { body: { src: 'every-edge', dst: 'other', edge_type: 'feeds/air' } })
  await propose('every-edge', 'DELETE /v1/graph/edges?src=every-edge&dst=other&edge_type=feeds%2Fair')
  const agent = 'every-agent'
  const policies = [
    {
      actions: ['read', 'delete'],
      conditions: [{ field: 'owner.id', op: 'in', value: ['$jwt.sub', 'usr_boss'] }],
      types: ['sys/*', 'payroll'],
    },
  ]
  await propose(agent, `PUT /v1/agents/${agent}/policies`, { body: { policies } })
  await propose(agent, `PUT /v1/agents/${agent}/zone`, { body: { zone: 'immutable_core' } })
  await propose(agent, `POST /v1/agents/${agent}/rotate-key`, { body: { reason: 'compromise' } })
  const key = {
    name: 'gate',
    scopes: ['proposals:decide', 'ingest'],
    agents: ['pay-*'],
    expires_in_secs: 777,
  }
  await propose(auditStrand, 'POST /v1/admin/api-keys', { body: key, key: admin.key })
  const signed = await Promise.all([...proposed].map(([one, of]) => signedProposal(server, one, of)))
  const actions = [...recordActions, ...edgeActions, ...agentActions, ...keyActions]
  expect(signed.map(({ action }) => action).sort()).toEqual([...actions].sort())
  return signed
}

async function signedProposal(server: TestServer, id: string, agent: string): Promise<SignedProposal> {
  const seq = Number(/^p_(\d+)_/.exec(id)?.[1])
  const query = { type: 'latest', limit: 100, types: ['sys/proposal'] }
  const { records } = (await checkedCall(server, `POST /v1/agents/${agent}/query`, { body: query })).body
  const { payload } = records.find((one: { seq: number }) => one.seq === seq)
  return { id, agent, action: payload.action, body: payload }
}

/** The texts, numbers and other single values in a value, without the names of members. */
export function valuesIn(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [value]
  return Object.values(value).flatMap(valuesIn)
}
