import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { agentSeed, keyPairFromSeed } from '../../src/strand/keys.js'
import { genesisBody } from '../../src/strand/genesis.js'
import { genesisType } from '../../src/strand/record-type.js'
import { seal } from '../../src/strand/seal.js'
import type { Zone } from '../../src/strand/zone.js'
import { agentCreated, agentStatus as renderStatus, chainHead } from '../../src/wire/render.js'
import type { CommitGroup, Draft } from '../shard/commit-group.js'
import { agentToRead } from '../shard/row-access.js'
import { findAgent, type Decision, type ShardState } from '../shard/state.js'
import type { AgentAhead } from '../shard/sign-ahead.js'
import { seedPlace } from '../store/tables/agents.js'
import type { Agent, AgentRow } from '../store/tables/agent.js'

/** Makes an agent with its genesis record; 409 agent_exists. The public key of a given seed was claimed before. */
export function agentCreate(
  state: ShardState,
  command: CommandOf<'agentCreate'>,
  group: CommitGroup,
): Decision {
  if (findAgent(state, group, command.agent) !== undefined) {
    return refuse('agent_exists', `Expected a name that no agent has, got "${command.agent}"`)
  }
  const agent = makeAgent(state, command, group)
  if ('code' in agent) return agent
  return () => ({ kind: 'reply', status: 201, body: agentCreated(agent) })
}

/** Adds a new agent and its genesis record, which may already be signed, to the group; 503 clock_skew. */
export function makeAgent(
  state: ShardState,
  { agent: name, zone, seed, ahead }: { agent: string; zone: Zone; seed?: Uint8Array; ahead?: AgentAhead },
  group: CommitGroup,
): Agent | Refusal {
  const keyPair = ahead?.keyPair ?? keyPairFromSeed(seed ?? agentSeed(state.masterSeed, name))
  const createdAtMs = ahead?.createdAtMs ?? state.clock()
  const agent: Agent = {
    name,
    no: state.store.agents.takeNo(),
    zone,
    createdAtMs,
    publicKey: keyPair.publicKey,
    strand: '',
    keyIndex: 0,
    keyPair,
    head: { seq: -1, hash: '', hlc: { ms: 0, counter: 0 }, signature: '' },
    strandBytes: 0,
    mutated: false,
    policies: [],
    retiredKeys: [],
    importing: false,
    fresh: false,
    owedErasures: [],
  }
  const body = Buffer.from(genesisBody({ agent: name, createdAtMs, publicKey: keyPair.publicKey, zone }))
  const draft: Draft = { type: genesisType, body, signing: 'record' }
  const genesis =
    ahead === undefined ? group.append(agent, draft) : group.appendChained(agent, draft, ahead.genesis)
  if ('code' in genesis) {
    state.store.agents.giveBackNo()
    return genesis
  }
  agent.strand = genesis.hash
  const row: AgentRow = {
    no: agent.no,
    zone,
    createdAtMs,
    publicKey: keyPair.publicKey,
    strand: agent.strand,
  }
  if (seed !== undefined) {
    const sealed = seal(state.masterSeed, { ...seedPlace(name), secret: seed }, state.random)
    row.sealedSeed = sealed.toString('hex')
  }
  group.newAgents.set(name, row)
  state.store.agents.keep(agent)
  return agent
}

/** Claims a public key for one agent; 409 key_in_use when it belongs to another. */
export function keyClaim(state: ShardState, command: CommandOf<'keyClaim'>, group: CommitGroup): Decision {
  const owner = group.publicKeys.get(command.publicKey) ?? state.store.publicKeyOwner(command.publicKey)
  if (owner !== undefined && owner !== command.agent) {
    return refuse('key_in_use', 'Expected a seed whose public key no other agent has')
  }
  group.publicKeys.set(command.publicKey, command.agent)
  return () => ({ kind: 'done' })
}

/** Names of agents, and their status where that is asked for; fewer than asked for where that reads too much. */
export function agentList(state: ShardState, command: CommandOf<'agentList'>): Outcome {
  const { names, total } = state.store.agents.names(command)
  if (command.statuses !== true) return { kind: 'names', names, total }
  const statuses: string[] = []
  let readBytes = 0
  for (const name of names) {
    if (readBytes >= limits.pageWorkBytesMax) break
    const looked = state.store.agents.look(name)
    readBytes += looked.readBytes
    statuses.push(renderStatus(looked.agent, looked.head, looked.strandBytes))
  }
  const cut = statuses.length < names.length ? ({ cut: true } as const) : {}
  return {
    kind: 'names',
    names: names.slice(0, statuses.length),
    total,
    statuses,
    ...cut,
  }
}

export function agentStatus(state: ShardState, command: CommandOf<'agentStatus'>): Outcome {
  const agent = agentToRead(state, command)
  if ('code' in agent) return agent
  return { kind: 'reply', status: 200, body: renderStatus(agent, agent.head, agent.strandBytes) }
}

export function agentHead(state: ShardState, command: CommandOf<'agentHead'>): Outcome {
  const agent = agentToRead(state, command)
  if ('code' in agent) return agent
  return { kind: 'reply', status: 200, body: chainHead(agent.name, agent.head) }
}
