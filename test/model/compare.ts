import { checkedCall } from '../support/http/answers.js'
import { msOf, proposalView, recordView } from './answers.js'
import { agreeOnAsOf, agreeOnQuery } from './compare-records.js'
import { agreeOnEdges, agreeOnTraversal } from './compare-graph.js'
import { agreeOnExport, agreeOnProof, agreeOnStream } from './compare-strands.js'
import { agree } from './matching.js'
import { openOf } from './mutations.js'
import { pagesOf, refusedFor } from './pages.js'
import type { Read, ReadOf } from './reads.js'
import type { Session } from './session.js'
import { compareTexts, viewOf, type ChainRecord } from './strand.js'
import { chainOf, type World } from './world.js'

/* Reads, each compared with the model. */

/** Carries out a read and compares the answer. */
export async function compare(session: Session, read: Read): Promise<void> {
  switch (read.what) {
    case 'record':
      return agreeOnRecord(session, read)
    case 'query':
      return agreeOnQuery(session, read)
    case 'state':
      return agreeOnState(session, read)
    case 'agents':
      return agreeOnAgents(session, read)
    case 'edges':
      return agreeOnEdges(session, read)
    case 'traversal':
      return agreeOnTraversal(session, read)
    case 'proposals':
      return agreeOnProposals(session, read)
    case 'export':
      return agreeOnExport(session, read)
    case 'asOf':
      return agreeOnAsOf(session, read)
    case 'stream':
      return agreeOnStream(session, read)
    case 'proof':
      return agreeOnProof(session, read)
  }
}

/**
 * Compares every chain, every record by its hash, the states around rotations, the state of every agent, and
 * all proposals.
 */
export async function compareAll(session: Session): Promise<void> {
  const by = 'root'
  for (const [agent, chain] of session.world.chains) {
    await agreeOnExport(session, { what: 'export', agent, from: undefined, to: undefined, by })
    await agreeOnState(session, { what: 'state', agent, by })
    for (const pick of chain.keys()) await agreeOnRecord(session, { what: 'record', agent, pick, by })
    await agreeAroundRotations(session, agent, chain)
    for (const direction of ['out', 'in'] as const) {
      const any = { edgeType: undefined, asOf: undefined, limit: undefined }
      await agreeOnEdges(session, { what: 'edges', agent, direction, by, ...any })
    }
  }
  const all = { agent: undefined, state: undefined, limit: undefined }
  await agreeOnProposals(session, { what: 'proposals', by, ...all })
}

/** Compares the strand as of the moments right before and at each rotation of its key. */
async function agreeAroundRotations(
  session: Session,
  agent: string,
  chain: readonly ChainRecord[],
): Promise<void> {
  for (const [pick, { type }] of chain.entries()) {
    if (type !== 'sys/key_rotate') continue
    for (const place of ['before', 'at'] as const) {
      const moment = { agent, pick, place, form: 'hlc' } as const
      await agreeOnAsOf(session, { what: 'asOf', agent, moment, limit: undefined, by: 'root' })
    }
  }
}

async function agreeOnRecord(session: Session, { agent, pick, by }: ReadOf<'record'>): Promise<void> {
  const { world } = session
  const chain = world.chains.get(agent) ?? []
  const record = chain[pick % chain.length]
  const route = `GET /v1/agents/${agent}/records/${record?.hash ?? 'ef'.repeat(32)}`
  const answer = await checkedCall(session.server, route, { key: session.actor(by).key })
  if (refusedFor(session, { agent, by }, { route, answer })) return
  if (record === undefined) agree(route, 'agent_not_found', answer.body.code)
  else agree(route, recordView(record, viewOf(chain)), answer.body)
}

async function agreeOnState(session: Session, { agent, by }: ReadOf<'state'>): Promise<void> {
  const { key } = session.actor(by)
  const route = `GET /v1/agents/${agent}/status`
  const answer = await checkedCall(session.server, route, { key })
  if (refusedFor(session, { agent, by }, { route, answer })) return
  agree(route, statusOf(session.world, agent), answer.body)
  const head = await checkedCall(session.server, `GET /v1/agents/${agent}/head`, { key })
  agree(`GET /v1/agents/${agent}/head`, headOf(session.world, agent), head.body)
  const query = `POST /v1/agents/${agent}/query`
  const again = await checkedCall(session.server, query, { key, body: { type: 'chain_head' } })
  agree(`${query} chain_head`, headOf(session.world, agent), again.body)
  const policies = await checkedCall(session.server, `GET /v1/agents/${agent}/policies`)
  const expected = {
    agent_id: agent,
    policies: viewOf(chainOf(session.world, agent)).policies,
    pending: pendingPolicies(session.world, agent),
  }
  agree(`GET /v1/agents/${agent}/policies`, expected, policies.body)
}

function pendingPolicies(world: World, agent: string): unknown {
  const pending = openOf(world, agent).find(({ mutation }) => mutation.action === 'policies')
  if (pending?.mutation.action !== 'policies') return null
  const { seq, mutation, effectiveAtMs } = pending
  return {
    proposal_id: `p_${seq}_${agent}`,
    policies: mutation.policies,
    effective_at_ms: effectiveAtMs,
  }
}

function statusOf(world: World, agent: string): unknown {
  const chain = chainOf(world, agent)
  const { zone, key } = viewOf(chain)
  return {
    agent_id: agent,
    zone,
    record_count: chain.length - 1,
    chain_head: chain.at(-1)?.hash,
    public_key: key,
    strand: chain[0]?.hash,
    timestamp_hlc: chain.at(-1)?.hlc,
    timestamp_ms: msOf(chain.at(-1)?.hlc),
    bytes: chain.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0),
    created_at_ms: chain[0]?.body.created_at_ms,
    imported_records: 0,
  }
}

function headOf(world: World, agent: string): unknown {
  const last = chainOf(world, agent).at(-1)
  return {
    agent_id: agent,
    chain_head: last?.hash,
    hash: `sha256:${last?.hash}`,
    seq: last?.seq,
    record_count: last?.seq,
    timestamp_hlc: last?.hlc,
    timestamp_ms: msOf(last?.hlc),
    signature: last?.signature,
  }
}

async function agreeOnAgents(session: Session, { prefix, limit, by }: ReadOf<'agents'>): Promise<void> {
  const { reach, key } = session.actor(by)
  const expected = [...session.world.chains.keys()]
    .filter((name) => name.startsWith(prefix))
    .sort(compareTexts)
  const path = (query: string) => `GET /v1/agents?${query}`
  if (!prefix.startsWith(reach)) {
    const { body } = await checkedCall(session.server, path(`prefix=${prefix}`), { key })
    agree(`Agents with ${prefix} for ${by}`, 'forbidden', body.code)
    return
  }
  const found = await pagesOf(limit, async (cursor) => {
    const query = new URLSearchParams({ prefix, ...cursor })
    const { body } = await checkedCall(session.server, path(String(query)), { key })
    agree(`The total of agents with ${prefix}`, expected.length, body.total)
    return { rows: body.agents, next: body.next_cursor }
  })
  agree(`Agents with ${prefix}`, expected, found)
}

async function agreeOnProposals(session: Session, read: ReadOf<'proposals'>): Promise<void> {
  const { agent, state, limit, by } = read
  const { key, scopes, reach } = session.actor(by)
  const filter = { ...(agent !== undefined && { agent }), ...(state !== undefined && { state }) }
  const about = `GET /v1/proposals?${new URLSearchParams(filter)}`
  const isForbidden = !scopes.includes('proposals:decide') && !scopes.includes('admin:*')
  if (isForbidden || (reach !== '' && agent?.startsWith(reach) !== true)) {
    const { body } = await checkedCall(session.server, about, { key })
    agree(`${about} by ${by}`, 'forbidden', body.code)
    return
  }
  if (agent !== undefined && !session.world.chains.has(agent)) {
    const { body } = await checkedCall(session.server, about, { key })
    agree(about, 'agent_not_found', body.code)
    return
  }
  const found = await pagesOf(limit, async (cursor) => {
    const query = new URLSearchParams({ ...filter, ...cursor })
    const { body } = await checkedCall(session.server, `GET /v1/proposals?${query}`, { key })
    return { rows: body.proposals, next: body.next_cursor }
  })
  const expected = session.world.proposals
    .filter((one) => (agent ?? one.agent) === one.agent && (state ?? one.state) === one.state)
    .sort((left, right) => compareTexts(left.agent, right.agent) || left.seq - right.seq)
    .map(proposalView)
  agree(about, expected, inOrderOfAgents(found))
}

/** Sorts rows by agent, because only the order within an agent is defined. */
function inOrderOfAgents(rows: readonly unknown[]): unknown[] {
  const agentOf = (row: unknown) =>
    typeof row === 'object' && row !== null && 'agent' in row ? String(row.agent) : ''
  return [...rows].sort((left, right) => compareTexts(agentOf(left), agentOf(right)))
}
