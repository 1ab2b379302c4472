import { lastWritten, mutationAnswer, proposalView, writeResponse } from './answers.js'
import { ingestVerdict, itemRefusal } from './ingest-rules.js'
import {
  effectOf,
  ending,
  isOfAgent,
  mutationRefusals,
  outcomeOf,
  proposalOf,
  settlement,
  superseded,
  voteRecord,
  voteRefusals,
  type Expected,
  type Settlement,
} from './mutations.js'
import { anything } from './matching.js'
import { publicKeyOf } from './public-key.js'
import { genesisOf, placeRefusals, refused, type Verdict } from './verdict.js'
import { chainOf, keptAt, keptPlace, nextSeq, type Asked, type Call, type Item, type World } from './world.js'

/*
 * What a call leads to, by /openapi.json: refused, answered from before, or done. Nothing is changed here but whom a
 * public key belongs to; what is done becomes part of the world when the server's records have been compared.
 */

/** Decides a call. */
export function decide(world: World, call: Call): Verdict {
  const { asked, by } = call
  if (!allows(by.scopes, scopesFor(asked))) return refused('forbidden')
  if (asked.kind === 'ingestMany') return before(world, call, '') ?? ingestVerdict(world, call, asked)
  const unreached = endsOf(asked).filter((agent) => !agent.startsWith(by.reach))
  if (unreached.length > 0) return refused('forbidden', ...badItems(asked))
  const agent = endsOf(asked)[0] ?? ''
  if (asked.kind === 'createAgent') return claimed(world, call) ?? createVerdict(world, asked, agent)
  return before(world, call, agent) ?? verdict(world, call)
}

function verdict(world: World, call: Call): Verdict {
  const { asked } = call
  switch (asked.kind) {
    case 'write':
      return appendVerdict(world, call, { ...asked, items: [asked.item], atomic: true })
    case 'batch':
      return appendVerdict(world, call, asked)
    case 'ingest':
    case 'ingestMany':
      return ingestVerdict(world, call, asked)
    case 'addEdge':
      return edgeVerdict(world, call, asked)
    case 'mutate':
      return mutateVerdict(world, call, asked)
    case 'vote':
      return voteVerdict(world, call, asked)
    case 'createAgent':
      throw new Error('Expected to have been decided')
  }
}

/** The agents that a call names; what it appends goes to the first. */
export function endsOf(asked: Asked): string[] {
  if (asked.kind === 'ingestMany') return []
  if (asked.kind === 'addEdge') return [asked.src, asked.dst]
  if (asked.kind === 'mutate' && asked.mutation.action === 'remove_edge')
    return [asked.agent, asked.mutation.dst]
  return [asked.agent]
}

/** The scopes of which a call needs one. */
function scopesFor(asked: Asked): string[] {
  if (asked.kind === 'createAgent') return ['agents:admin']
  if (asked.kind === 'vote')
    return asked.vote === 'cancel'
      ? ['records:delete', 'records:erase', 'agents:admin']
      : ['proposals:decide']
  if (asked.kind === 'mutate') {
    if (isOfAgent(asked.mutation)) return ['agents:admin']
    return [asked.mutation.action === 'erase' ? 'records:erase' : 'records:delete']
  }
  const ingests = asked.kind === 'ingest' || asked.kind === 'ingestMany'
  return [ingests || (asked.kind === 'write' && asked.via === 'ingest') ? 'ingest' : 'records:write']
}

function allows(scopes: readonly string[], needed: string[]): boolean {
  return scopes.includes('admin:*') || needed.some((scope) => scopes.includes(scope))
}

/** What was answered before under the call's idempotency key. */
function before(world: World, call: Call, realm: string): Verdict | undefined {
  if (call.idempotencyKey === undefined) return undefined
  const kept = keptAt(world, keptPlace(call, realm))
  if (kept === undefined) return undefined
  if (kept.request !== requestText(call)) return refused('idempotency_key_reused')
  return kept.answer === undefined ? undefined : { kind: 'replayed', answer: kept.answer }
}

/** Making an agent ties the key to the request first, whatever comes of it. */
function claimed(world: World, call: Call): Verdict | undefined {
  if (call.idempotencyKey === undefined) return undefined
  const reused = before(world, call, 'agents')
  if (reused !== undefined) return reused
  const place = keptPlace(call, 'agents')
  if (keptAt(world, place) === undefined) {
    world.kept.set(place, { request: requestText(call), answer: undefined, atMs: world.nowMs })
  }
  return before(world, call, endsOf(call.asked)[0] ?? '')
}

/** Tells two requests of one caller apart. */
export function requestText({ asked }: Call): string {
  return JSON.stringify(asked)
}

/** Notes whom a public key belongs to; true when it is another's. */
function keyTaken(world: World, seedHex: string | undefined, agent: string): boolean {
  if (seedHex === undefined) return false
  const publicKey = publicKeyOf(seedHex)
  const owner = world.keyOwners.get(publicKey)
  if (owner === undefined) world.keyOwners.set(publicKey, agent)
  return owner !== undefined && owner !== agent
}

function createVerdict(
  world: World,
  { zone, seedHex }: Extract<Asked, { kind: 'createAgent' }>,
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

function badItems(asked: Asked): string[] {
  if (asked.kind !== 'write' && asked.kind !== 'batch') return []
  const items = asked.kind === 'write' ? [asked.item] : asked.items
  return items.map(itemRefusal).filter((code) => code !== undefined)
}

/** One record, or a batch of them. */
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
      return call.asked.kind === 'batch' ? { results } : results[0]
    },
  }
}

function edgeVerdict(
  world: World,
  call: Call,
  { src, dst, edgeType, weight = 1 }: Extract<Asked, { kind: 'addEdge' }>,
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
  { agent, mutation, seedHex }: Extract<Asked, { kind: 'mutate' }>,
): Verdict {
  const refusals = placeRefusals(world, call, { agent, emerges: false })
  const chain = world.chains.get(agent)
  if (chain === undefined) return refused(...refusals)
  // A request that is refused for its place claims no key.
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
  { agent, seq, vote }: Extract<Asked, { kind: 'vote' }>,
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
  let settled: Settlement | undefined
  if (outcome === 'applies') settled = settlement(world, proposal, nextSeq(world, agent) + 1)
  else if (outcome !== undefined) settled = ending(world, proposal, outcome)
  records.push(...(settled?.records ?? []))
  return {
    kind: 'done',
    status: 200,
    grows: [{ agent, records, signed: 'each' }],
    answer: () => proposalView(proposal),
    change() {
      proposal.votes.push({ principal: by.id, line: by.line, vote, at_ms: world.nowMs })
      if (settled !== undefined) end(world, settled)
    },
  }
}

/** Notes how proposals have ended. */
export function end(world: World, { ends }: Settlement): void {
  for (const { proposal, state, reason } of ends) {
    Object.assign(proposal, { state, reason, endedAtMs: world.nowMs })
  }
}
