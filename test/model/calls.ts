import { publicKeyOf } from './public-key.js'
import type { Session } from './session.js'
import { firstAgents } from './reads.js'
import type { Step, StepOf } from './steps.js'
import { isSystem, viewOf, type ChainRecord, type Edge } from './strand.js'
import { dueAtMs } from './mutations.js'
import type { ModelRequest, Call, Item } from './world.js'

/* Carries out steps: resolves the things that they name by number, and makes the calls. */

/** Carries out a step. */
export async function takeStep(session: Session, step: Exclude<Step, { do: 'read' }>): Promise<void> {
  switch (step.do) {
    case 'time':
      await session.passTime(msOf(session, step), step.server)
      return
    case 'again':
      await sendAgain(session, step)
      return
    case 'approvals': {
      const request = voteOf(session, { of: 'open', pick: step.pick, vote: 'approve' })
      if (request === undefined) return
      for (const by of ['decider', 'deputy', 'admin', 'second']) {
        await session.perform({ request, by: session.actor(by) })
      }
      return
    }
    case 'together': {
      const by = session.actor('root')
      const calls = step.writes.map(({ agent, data, grouped }): Call => {
        const item = { data: numbered(session, data) }
        const request = { kind: 'write', agent, via: 'collection', item } as const
        return grouped ? { request, by, signing: 'group' } : { request, by }
      })
      await session.performTogether(calls)
      return
    }
    default:
      await makeCall(session, step)
  }
}

type Calling = Exclude<Step, { do: 'read' | 'time' | 'again' | 'together' | 'approvals' }>

async function makeCall(session: Session, step: Calling): Promise<void> {
  const request = modelRequestOf(session, step)
  if (request === undefined) return
  const call: Call = { request, by: session.actor(step.by) }
  if ('grouped' in step && step.grouped) call.signing = 'group'
  const chain = 'agent' in request ? session.world.chains.get(request.agent) : undefined
  if (step.carries === 'key' || step.carries === 'killed') call.idempotencyKey = `key-${session.nextNumber()}`
  if (step.carries === 'head' && chain !== undefined) call.ifMatch = chain.at(-1)?.hash ?? ''
  if (step.carries === 'stale head') call.ifMatch = chain?.at(-2)?.hash ?? 'ab'.repeat(32)
  const refused = await (step.carries === 'killed' ? session.performKilled(call) : session.perform(call))
  // A refused request is corrected and sent again under its key.
  if (refused && call.idempotencyKey !== undefined) {
    await session.perform({ ...call, request: differentFrom(session, request) })
  }
}

/** Sends the same request or a different one again under its key. */
async function sendAgain(session: Session, { pick, request: which }: StepOf<'again'>): Promise<void> {
  const call = session.keyed.at(-1 - (pick % session.keyed.length))
  if (call === undefined) return
  const { ifMatch: _ifMatch, ...rest } = call
  const request = which === 'same' ? call.request : differentFrom(session, call.request)
  await session.perform({ ...rest, request })
}

/** A different request, which reuses the Idempotency-Key of an answered one. */
function differentFrom(session: Session, request: ModelRequest): ModelRequest {
  const data = { n: session.nextNumber(), other: true }
  switch (request.kind) {
    case 'ingestMany':
      return request
    case 'ingest':
      return { ...request, lines: [JSON.stringify(data)] }
    case 'addEdge':
      return { ...request, weight: 77 }
    case 'write':
      return { ...request, item: { data } }
    default:
      return { kind: 'write', agent: request.agent, via: 'agent', item: { data } }
  }
}

function modelRequestOf(session: Session, step: Calling): ModelRequest | undefined {
  switch (step.do) {
    case 'create': {
      const { agent, zone, seed } = step
      return { kind: 'createAgent', agent, zone, ...(seed !== undefined && { seedHex: seedHex(seed) }) }
    }
    case 'write': {
      const { agent, via } = step
      const item = itemOf(session, step.item)
      if (via === 'ingest' && Array.isArray(item.data)) {
        const lines = item.data.map((data) => JSON.stringify(data))
        return { kind: 'ingest', agent, lines, all: false, asArray: true }
      }
      return { kind: 'write', agent, via, item: via === 'ingest' ? { data: item.data } : item }
    }
    case 'batch': {
      const { agent, via, atomic } = step
      return { kind: 'batch', agent, via, atomic, items: step.items.map((item) => itemOf(session, item)) }
    }
    case 'ingest':
      return ingestOf(session, step)
    case 'mutate':
      return mutateOf(session, step)
    case 'addEdge': {
      const { src, dst, edgeType, weight } = step
      return { kind: 'addEdge', src, dst, edgeType, weight }
    }
    case 'removeEdge':
      return removalOf(session, step)
    case 'change':
      return changeOf(step)
    case 'vote':
      return voteOf(session, step)
  }
}

/** Adds a number to a body, so that bodies differ. */
function numbered(session: Session, data: object): Record<string, unknown> {
  return { n: session.nextNumber(), ...data }
}

function itemOf(session: Session, { data, type }: { data: unknown; type?: unknown }): Item {
  const isBody = typeof data === 'object' && data !== null && !Array.isArray(data)
  return { data: isBody ? numbered(session, data) : data, ...(type !== undefined && { type }) }
}

function ingestOf(session: Session, { agent, all, lines }: StepOf<'ingest'>): ModelRequest {
  const texts = lines.map(({ line, agent: other }) => {
    if (typeof line === 'string') return line
    const item = itemOf(session, line)
    return JSON.stringify(agent === undefined ? { agent: other, ...item } : item.data)
  })
  return agent === undefined
    ? { kind: 'ingestMany', lines: texts, all }
    : { kind: 'ingest', agent, lines: texts, all }
}

function mutateOf(session: Session, { agent, action: wanted, target }: StepOf<'mutate'>): ModelRequest {
  const chain = session.world.chains.get(agent) ?? []
  const record = recordOf(chain, target)
  const { hash = 'cd'.repeat(32), seq = 0 } = record ?? {}
  const isDeleted = chain.length > 0 && viewOf(chain).deleted.has(hash)
  const toggled = isDeleted ? 'restore' : 'delete'
  const action = wanted === 'turn' ? toggled : wanted
  return { kind: 'mutate', agent, mutation: { action, target: hash, target_seq: seq } }
}

function recordOf(
  chain: readonly ChainRecord[],
  { of, pick }: StepOf<'mutate'>['target'],
): ChainRecord | undefined {
  if (of === 'nothing') return undefined
  const found = chain.filter(({ type }) => isSystem(type) === (of === 'system'))
  // Only four records, so that the same records are changed repeatedly.
  return found[(pick % found.length) % 4]
}

function removalOf(session: Session, step: StepOf<'removeEdge'>): ModelRequest {
  const edges = existingEdges(session)
  const edge = step.pick === undefined ? undefined : edges[step.pick % edges.length]
  const { src, dst, edge_type } = edge ?? { src: step.src, dst: step.dst, edge_type: step.edgeType }
  return { kind: 'mutate', agent: src, mutation: { action: 'remove_edge', edge_type, dst } }
}

function existingEdges({ world }: Session): Edge[] {
  return [...world.chains.values()].flatMap((chain) => [...viewOf(chain).edges.values()])
}

const policyLists: readonly unknown[][] = [
  [],
  [{ actions: ['read'], conditions: [{ field: 'tag', op: 'eq', value: 'x' }] }],
  [
    { actions: ['read', 'write'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] },
    { actions: ['delete'], conditions: [] },
  ],
]

function changeOf({ agent, change }: StepOf<'change'>): ModelRequest {
  switch (change.action) {
    case 'zone':
      return { kind: 'mutate', agent, mutation: { action: 'zone', zone: change.zone } }
    case 'policies':
      return {
        kind: 'mutate',
        agent,
        mutation: { action: 'policies', policies: policyLists[change.policies] ?? [] },
      }
    case 'rotate_key': {
      if (change.seed === undefined)
        return { kind: 'mutate', agent, mutation: { action: 'rotate_key', public_key: undefined } }
      const hex = seedHex(change.seed)
      const mutation = { action: 'rotate_key', public_key: publicKeyOf(hex) } as const
      return { kind: 'mutate', agent, mutation, seedHex: hex }
    }
  }
}

function seedHex(seed: number): string {
  return String(seed + 10).repeat(32)
}

function voteOf(
  { world }: Session,
  { of, pick, vote }: Pick<StepOf<'vote'>, 'of' | 'pick' | 'vote'>,
): ModelRequest | undefined {
  const found = world.proposals.filter(({ state }) => of === 'all' || state === 'proposed')
  const proposal =
    of === 'nothing' ? { agent: firstAgents[pick % 4] ?? '', seq: 2 } : found[pick % found.length]
  return proposal === undefined ? undefined : { kind: 'vote', agent: proposal.agent, seq: proposal.seq, vote }
}

/** How far the clock may be behind its latest reading; the server accepts a minute. */
const behindMsMax = 45_000

function msOf({ world }: Session, { ms }: StepOf<'time'>): number {
  if (typeof ms === 'number') return Math.max(ms, world.latestMs - behindMsMax - world.nowMs)
  const dues = world.proposals.filter(({ state }) => state === 'proposed').map(dueAtMs)
  if (dues.length === 0) return 1
  return Math.min(...dues) - world.nowMs - (ms === 'due' ? 0 : 1)
}
