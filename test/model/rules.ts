import { lastWritten, mutationAnswer, proposalView, writeResponse } from './answers.js'
import { ingestVerdict, itemRefusal } from './ingest-rules.js'
import {
  effectOf,
  ending,
  isOfAgent,
  mutationRefusals,
  outcomeOf,
  proposalOf,
  resolution,
  superseded,
  voteRecord,
  voteRefusals,
  type Expected,
  type ProposalEnds,
} from './mutations.js'
import { anything } from './matching.js'
import { viewOf } from './strand.js'
import { publicKeyOf } from './public-key.js'
import { genesisOf, placeRefusals, refused, type Verdict } from './verdict.js'
import {
  chainOf,
  storedAnswer,
  answerKey,
  nextSeq,
  type ModelRequest,
  type Call,
  type Item,
  type StoredAnswer,
  type World,
} from './world.js'

/*
 * The expected outcome of a call, by /openapi.json: refused, replayed, or done. Only the owners of public
 * keys change here; the other changes happen once the records of the server have been compared.
 */

/** Decides a call. */
export function decide(world: World, call: Call): Verdict {
  const { request, by } = call
  if (!allows(by.scopes, scopesFor(request))) return refused('forbidden')
  if (request.kind === 'ingestMany') return before(world, call, '') ?? ingestVerdict(world, call, request)
  const unreached = endsOf(request).filter((agent) => !agent.startsWith(by.reach))
  if (unreached.length > 0) return refused('forbidden', ...badItems(request))
  const agent = endsOf(request)[0] ?? ''
  if (request.kind === 'createAgent') return claimed(world, call) ?? createVerdict(world, request, agent)
  return before(world, call, agent) ?? verdict(world, call)
}

function verdict(world: World, call: Call): Verdict {
  const { request } = call
  switch (request.kind) {
    case 'write':
      return appendVerdict(world, call, { ...request, items: [request.item], atomic: true })
    case 'batch':
      return appendVerdict(world, call, request)
    case 'ingest':
    case 'ingestMany':
      return ingestVerdict(world, call, request)
    case 'addEdge':
      return edgeVerdict(world, call, request)
    case 'mutate':
      return mutateVerdict(world, call, request)
    case 'vote':
      return voteVerdict(world, call, request)
    case 'createAgent':
      throw new Error('Expected to have been decided')
  }
}

/** The agents that a call names; it appends to the first. */
export function endsOf(request: ModelRequest): string[] {
  if (request.kind === 'ingestMany') return []
  if (request.kind === 'addEdge') return [request.src, request.dst]
  if (request.kind === 'mutate' && request.mutation.action === 'remove_edge')
    return [request.agent, request.mutation.dst]
  return [request.agent]
}

/** The scopes of a call, of which the caller needs one. */
function scopesFor(request: ModelRequest): string[] {
  if (request.kind === 'createAgent') return ['agents:admin']
  if (request.kind === 'vote')
    return request.vote === 'cancel'
      ? ['records:delete', 'records:erase', 'agents:admin']
      : ['proposals:decide']
  if (request.kind === 'mutate') {
    if (isOfAgent(request.mutation)) return ['agents:admin']
    return [request.mutation.action === 'erase' ? 'records:erase' : 'records:delete']
  }
  const ingests = request.kind === 'ingest' || request.kind === 'ingestMany'
  return [ingests || (request.kind === 'write' && request.via === 'ingest') ? 'ingest' : 'records:write']
}

function allows(scopes: readonly string[], needed: string[]): boolean {
  return scopes.includes('admin:*') || needed.some((scope) => scopes.includes(scope))
}

/** The earlier answer to the Idempotency-Key of a call. */
function before(world: World, call: Call, realm: string): Verdict | undefined {
  if (call.idempotencyKey === undefined) return undefined
  const stored = storedAnswer(world, answerKey(call, realm))
  if (stored === undefined) return undefined
  if (stored.request !== requestText(call) && !isErased(world, realm, stored))
    return refused('idempotency_key_reused')
  return stored.answer === undefined ? undefined : { kind: 'replayed', answer: stored.answer }
}

/** Whether a record of the first request was erased: then its answer is repeated to any request. */
function isErased(world: World, realm: string, { seqs: [first, last] = [0, -1] }: StoredAnswer): boolean {
  const chain = world.chains.get(realm) ?? []
  const { erased } = viewOf(chain)
  return chain.slice(first, last + 1).some(({ hash }) => erased.has(hash))
}

/** Creating an agent first claims the Idempotency-Key for the request, whatever the outcome. */
function claimed(world: World, call: Call): Verdict | undefined {
  if (call.idempotencyKey === undefined) return undefined
  const reused = before(world, call, 'agents')
  if (reused !== undefined) return reused
  const claimKey = answerKey(call, 'agents')
  if (storedAnswer(world, claimKey) === undefined) {
    world.storedAnswers.set(claimKey, { request: requestText(call), answer: undefined, atMs: world.nowMs })
  }
  return before(world, call, endsOf(call.request)[0] ?? '')
}

/** A text that identifies a request of a caller. */
export function requestText({ request }: Call): string {
  return JSON.stringify(request)
}

/** Claims a public key for an agent; true if it belongs to another agent. */
function keyTaken(world: World, seedHex: string | undefined, agent: string): boolean {
  if (seedHex === undefined) return false
  const publicKey = publicKeyOf(seedHex)
  const owner = world.keyOwners.get(publicKey)
  if (owner === undefined) world.keyOwners.set(publicKey, agent)
  return owner !== undefined && owner !== agent
}

function createVerdict(
  world: World,
  { zone, seedHex }: Extract<ModelRequest, { kind: 'createAgent' }>,
  agent: string,
): Verdict {
  if (world.chains.has(agent)) return refused('agent_exists')
  if (keyTaken(world, seedHex, agent)) return refused('key_in_use')
  const genesis = genesisOf(world, agent, { zone, seedHex })
  return {
    kind: 'done',
    status: 201,
    grows: [{ agent, records: [genesis], signed: 'each' }],
    answer() {
      const [first] = chainOf(world, agent)
      return {
        agent_id: agent,
        name: agent,
        zone,
        public_key: first?.body.public_key,
        strand: first?.hash,
        created_at_ms: world.nowMs,
      }
    },
  }
}

function badItems(request: ModelRequest): string[] {
  if (request.kind !== 'write' && request.kind !== 'batch') return []
  const items = request.kind === 'write' ? [request.item] : request.items
  return items.map(itemRefusal).filter((code) => code !== undefined)
}

/** The verdict on a single record or a batch. */
function appendVerdict(
  world: World,
  call: Call,
  { agent, via, items, atomic }: { agent: string; via: string; items: Item[]; atomic: boolean },
): Verdict {
  const emerges = via !== 'agent'
  const bad = items.map(itemRefusal)
  const good = items.filter((_item, index) => bad[index] === undefined)
  const refusals = placeRefusals(world, call, { agent, emerges })
  if (good.length === 0 || (atomic && good.length < items.length))
    refusals.push(...bad.filter((code) => code !== undefined))
  if (refusals.length > 0) return refused(...refusals)
  const isNew = !world.chains.has(agent)
  const records: Expected[] = isNew ? [genesisOf(world, agent, { zone: 'governed' })] : []
  records.push(...good.map(({ data, type = 'record' }) => ({ type: String(type), body: data })))
  const first = nextSeq(world, agent) + (isNew ? 1 : 0)
  return {
    kind: 'done',
    status: 201,
    grows: [{ agent, records, signed: call.signing === 'group' ? 'last' : 'each' }],
    answer() {
      let seq = first
      const results = bad.map((code) =>
        code === undefined
          ? writeResponse(agent, chainOf(world, agent)[seq++])
          : { error: { code, detail: anything } },
      )
      return call.request.kind === 'batch' ? { results } : results[0]
    },
  }
}

function edgeVerdict(
  world: World,
  call: Call,
  { src, dst, edgeType, weight = 1 }: Extract<ModelRequest, { kind: 'addEdge' }>,
): Verdict {
  const refusals = placeRefusals(world, call, { agent: src, emerges: false })
  if (!world.chains.has(dst)) refusals.push('agent_not_found')
  if (refusals.length > 0) return refused(...refusals)
  const edge = { src, dst, edge_type: edgeType, weight }
  return {
    kind: 'done',
    status: 201,
    grows: [{ agent: src, records: [{ type: 'edge/add', body: edge }], signed: 'each' }],
    answer: () => ({ ...edge, ...lastWritten(world, src) }),
  }
}

function mutateVerdict(
  world: World,
  call: Call,
  { agent, mutation, seedHex }: Extract<ModelRequest, { kind: 'mutate' }>,
): Verdict {
  const refusals = placeRefusals(world, call, { agent, emerges: false })
  const chain = world.chains.get(agent)
  if (chain === undefined) return refused(...refusals)
  // A request that is refused because of the agent's state claims no key.
  if (refusals.length === 0 && keyTaken(world, seedHex, agent)) refusals.push('key_in_use')
  const target = 'target' in mutation ? chain.find(({ hash }) => hash === mutation.target) : undefined
  if ('target' in mutation && target === undefined) return refused('record_not_found', ...refusals)
  if (target !== undefined && /^(sys|auth|edge)\//.test(target.type)) return refused('forbidden', ...refusals)
  refusals.push(...mutationRefusals(world, agent, mutation))
  if (refusals.length > 0) return refused(...refusals)
  const principal = call.by.id
  if (zoneOf(world, agent) === 'free') {
    const effect = effectOf(world, { agent, mutation }, { principal })
    return {
      kind: 'done',
      status: 200,
      grows: [{ agent, records: [effect], signed: 'each' }],
      answer: () => mutationAnswer(world, agent, mutation),
    }
  }
  const ended = superseded(world, agent, mutation)
  const { proposal, record } = proposalOf(world, { agent, mutation }, call.by)
  proposal.seq += ended.records.length
  return {
    kind: 'done',
    status: 202,
    grows: [{ agent, records: [...ended.records, record], signed: 'each' }],
    answer: () => ({
      proposal_id: `p_${proposal.seq}_${agent}`,
      state: 'proposed',
      effective_at_ms: proposal.effectiveAtMs,
      ...(mutation.action === 'policies' && { detail: anything, warnings: [] }),
    }),
    change() {
      if (mutation.action === 'rotate_key') {
        proposal.mutation = { ...mutation, public_key: chainOf(world, agent).at(-1)?.body.public_key }
      }
      end(world, ended)
      world.proposals.push(proposal)
    },
  }
}

function zoneOf(world: World, agent: string): string {
  const chain = chainOf(world, agent)
  return chain.findLast(({ type }) => type === 'sys/zone')?.body.zone ?? chain[0]?.body.zone
}

function voteVerdict(
  world: World,
  { by }: Call,
  { agent, seq, vote }: Extract<ModelRequest, { kind: 'vote' }>,
): Verdict {
  const proposal = world.proposals.find((one) => one.agent === agent && one.seq === seq)
  if (proposal === undefined) return refused('proposal_not_found')
  const voter = {
    vote,
    id: by.id,
    line: by.line,
    madeAtMs: by.madeAtMs,
    admin: by.scopes.includes('admin:*'),
  }
  const refusals = voteRefusals(world, proposal, voter)
  if (refusals.length > 0) return refused(...refusals)
  const records = [voteRecord(world, proposal, voter)]
  const outcome = outcomeOf(proposal, vote)
  let ends: ProposalEnds | undefined
  if (outcome === 'applies') ends = resolution(world, proposal, nextSeq(world, agent) + 1)
  else if (outcome !== undefined) ends = ending(world, proposal, outcome)
  records.push(...(ends?.records ?? []))
  return {
    kind: 'done',
    status: 200,
    grows: [{ agent, records, signed: 'each' }],
    answer: () => proposalView(proposal),
    change() {
      proposal.votes.push({ principal: by.id, line: by.line, vote, at_ms: world.nowMs })
      if (ends !== undefined) end(world, ends)
    },
  }
}

/** Updates the states of ended proposals. */
export function end(world: World, { ends }: ProposalEnds): void {
  for (const { proposal, state, reason } of ends) {
    Object.assign(proposal, { state, reason, endedAtMs: world.nowMs })
  }
}
