import { publicKeyOf } from './public-key.js'
import type { Session } from './session.js'
import { firstAgents } from './reads.js'
import type { Step, StepOf } from './steps.js'
import { isSystem, viewOf, type ChainRecord, type Edge } from './strand.js'
import { dueAtMs } from './mutations.js'
import type { Asked, Call, Item } from './world.js'

/*
 * Takes steps: looks up what they name in what is there, and carries them out.
 */

/** Makes the first agents of a run and takes its steps. */
export async function takeStep(session: Session, step: Exclude<Step, { do: 'read' }>): Promise<void> {
  switch (step.do) {
    case 'time':
      await session.passTime(msOf(session, step), step.server)
      return
    case 'again':
      await sendAgain(session, step)
      return
    case 'approvals': {
      const asked = voteOf(session, { of: 'open', pick: step.pick, vote: 'approve' })
      if (asked === undefined) return
      for (const by of ['decider', 'deputy', 'admin', 'second']) {
        await session.perform({ asked, by: session.actor(by) })
      }
      return
    }
    case 'together': {
      const by = session.actor('root')
      const calls = step.writes.map(({ agent, data, grouped }): Call => {
        const item = { data: numbered(session, data) }
        const asked = { kind: 'write', agent, via: 'collection', item } as const
        return grouped ? { asked, by, signing: 'group' } : { asked, by }
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
  const asked = askedOf(session, step)
  if (asked === undefined) return
  const call: Call = { asked, by: session.actor(step.by) }
  if ('grouped' in step && step.grouped) call.signing = 'group'
  const chain = 'agent' in asked ? session.world.chains.get(asked.agent) : undefined
  if (step.carries === 'key' || step.carries === 'killed') call.idempotencyKey = `key-${session.nextNumber()}`
  if (step.carries === 'head' && chain !== undefined) call.ifMatch = chain.at(-1)?.hash ?? ''
  if (step.carries === 'stale head') call.ifMatch = chain?.at(-2)?.hash ?? 'ab'.repeat(32)
  const refused = await (step.carries === 'killed' ? session.performKilled(call) : session.perform(call))
  // What was refused is put right and sent again under its key.
  if (refused && call.idempotencyKey !== undefined) {
    await session.perform({ ...call, asked: otherThan(session, asked) })
  }
}

/** Sends a call again under its key: the same, or another. */
async function sendAgain(session: Session, { pick, request }: StepOf<'again'>): Promise<void> {
  const call = session.keyed.at(-1 - (pick % session.keyed.length))
  if (call === undefined) return
  const { ifMatch: _ifMatch, ...rest } = call
  const asked = request === 'same' ? call.asked : otherThan(session, call.asked)
  await session.perform({ ...rest, asked })
}

/** Another request that an idempotency key is no good for once the first was answered. */
function otherThan(session: Session, asked: Asked): Asked {
  const data = { n: session.nextNumber(), other: true }
  switch (asked.kind) {
    case 'ingestMany':
      return asked
    case 'ingest':
      return { ...asked, lines: [JSON.stringify(data)] }
    case 'addEdge':
      return { ...asked, weight: 77 }
    case 'write':
      return { ...asked, item: { data } }
    default:
      return { kind: 'write', agent: asked.agent, via: 'agent', item: { data } }
  }
}

function askedOf(session: Session, step: Calling): Asked | undefined {
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

/** Bodies are told apart by their number. */
function numbered(session: Session, data: object): Record<string, unknown> {
  return { n: session.nextNumber(), ...data }
}

function itemOf(session: Session, { data, type }: { data: unknown; type?: unknown }): Item {
  const isBody = typeof data === 'object' && data !== null && !Array.isArray(data)
  return { data: isBody ? numbered(session, data) : data, ...(type !== undefined && { type }) }
}

function ingestOf(session: Session, { agent, all, lines }: StepOf<'ingest'>): Asked {
  const texts = lines.map(({ line, agent: other }) => {
    if (typeof line === 'string') return line
    const item = itemOf(session, line)
    return JSON.stringify(agent === undefined ? { agent: other, ...item } : item.data)
  })
  return agent === undefined
    ? { kind: 'ingestMany', lines: texts, all }
    : { kind: 'ingest', agent, lines: texts, all }
}

function mutateOf(session: Session, { agent, action: asked, target }: StepOf<'mutate'>): Asked {
  const chain = session.world.chains.get(agent) ?? []
  const record = recordOf(chain, target)
  const { hash = 'cd'.repeat(32), seq = 0 } = record ?? {}
  const isDeleted = chain.length > 0 && viewOf(chain).deleted.has(hash)
  const turned = isDeleted ? 'restore' : 'delete'
  const action = asked === 'turn' ? turned : asked
  return { kind: 'mutate', agent, mutation: { action, target: hash, target_seq: seq } }
}

function recordOf(
  chain: readonly ChainRecord[],
  { of, pick }: StepOf<'mutate'>['target'],
): ChainRecord | undefined {
  if (of === 'nothing') return undefined
  const found = chain.filter(({ type }) => isSystem(type) === (of === 'system'))
  // Few records, so that the same ones are changed again and again.
  return found[(pick % found.length) % 4]
}

function removalOf(session: Session, step: StepOf<'removeEdge'>): Asked {
  const edges = edgesThere(session)
  const edge = step.pick === undefined ? undefined : edges[step.pick % edges.length]
  const { src, dst, edge_type } = edge ?? { src: step.src, dst: step.dst, edge_type: step.edgeType }
  return { kind: 'mutate', agent: src, mutation: { action: 'remove_edge', edge_type, dst } }
}

function edgesThere({ world }: Session): Edge[] {
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

function changeOf({ agent, change }: StepOf<'change'>): Asked {
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
): Asked | undefined {
  const found = world.proposals.filter(({ state }) => of === 'all' || state === 'proposed')
  const one = of === 'nothing' ? { agent: firstAgents[pick % 4] ?? '', seq: 2 } : found[pick % found.length]
  return one === undefined ? undefined : { kind: 'vote', agent: one.agent, seq: one.seq, vote }
}

/** How far the clock may stand behind what it once said: the server takes a minute. */
const behindMsMax = 45_000

function msOf({ world }: Session, { ms }: StepOf<'time'>): number {
  if (typeof ms === 'number') return Math.max(ms, world.latestMs - behindMsMax - world.nowMs)
  const dues = world.proposals.filter(({ state }) => state === 'proposed').map(dueAtMs)
  if (dues.length === 0) return 1
  return Math.min(...dues) - world.nowMs - (ms === 'due' ? 0 : 1)
}
