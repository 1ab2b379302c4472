import { refuse } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { agentCreated, agentStatus as renderStatus, chainHead } from '../../src/wire/render.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { makeAgent } from '../shard/new-agent.js'
import { agentToRead } from '../mutations/row-access.js'
import { findAgent, type Decision, type ShardState } from '../shard/state.js'
import type { FeatureCommands } from '../shard/command-table.js'
import { publicKeyOwner, publicKeys } from '../store/tables/public-keys.js'

/** Agents. */
export const agentCommands = {
  writes: {
    keyClaim: { decide: keyClaim },
    agentCreate: { decide: agentCreate, isLong: ({ isMember }) => isMember === true },
  },
  reads: {
    agentHead: { answer: agentHead },
    agentStatus: { answer: agentStatus },
    agentList: { answer: agentList, isForCallerAlone: true },
  },
} satisfies FeatureCommands

/**
 * Creates an agent with its genesis record; 409 agent_exists. The caller has claimed the public key of a
 * given seed.
 */
function agentCreate(state: ShardState, command: CommandOf<'agentCreate'>, group: CommitGroup): Decision {
  if (findAgent(state, group, command.agent) !== undefined) {
    return refuse('agent_exists', `Agent "${command.agent}" already exists`)
  }
  const agent = makeAgent(state, command, group)
  if ('code' in agent) return agent
  return () => ({ kind: 'reply', status: 201, body: agentCreated(agent) })
}

/** Claims a public key for an agent; 409 key_in_use if it belongs to another agent. */
function keyClaim(state: ShardState, command: CommandOf<'keyClaim'>, group: CommitGroup): Decision {
  const owner =
    group.changes.find(publicKeys)?.get(command.publicKey) ??
    publicKeyOwner(state.store.environment, command.publicKey)
  if (owner !== undefined && owner !== command.agent) {
    return refuse('key_in_use', 'The public key of this seed belongs to another agent')
  }
  group.changes.of(publicKeys).set(command.publicKey, command.agent)
  return () => ({ kind: 'done' })
}

/**
 * A page of agents' names, and their statuses if requested; the page ends early at `pageWorkBytesMax` bytes
 * read, and at `agentNamesExaminedMax` names with `contains`.
 */
function agentList(state: ShardState, command: CommandOf<'agentList'>): Outcome {
  const { agents } = state.store
  const { contains } = command
  const page = contains === undefined ? agents.names(command) : agents.namesWith(contains, command)
  const { names, total, examinedTo } = page
  const isFull = names.length === command.limit
  const ended = examinedTo === undefined || isFull ? {} : { cut: examinedTo }
  if (command.statuses !== true) return { kind: 'names', names, total, ...ended }
  const statuses: string[] = []
  let readBytes = 0
  const shown: string[] = []
  let last: string | undefined
  for (const name of names) {
    if (readBytes >= limits.pageWorkBytesMax) break
    last = name
    const found = state.store.setAside.unlessInvalid(() => state.store.agents.summary(name))
    if (found === undefined) continue
    readBytes += found.readBytes
    shown.push(name)
    statuses.push(renderStatus(found.agent, found.head, found.strandBytes))
  }
  // A full page without an invalid agent is shorter, but not the last one.
  const isWhole = last === names.at(-1) && (!isFull || shown.length === names.length)
  const cut = isWhole || last === undefined ? ended : { cut: last }
  return { kind: 'names', names: shown, total, statuses, ...cut }
}

function agentStatus(state: ShardState, command: CommandOf<'agentStatus'>): Outcome {
  const agent = agentToRead(state, command)
  if ('code' in agent) return agent
  return { kind: 'reply', status: 200, body: renderStatus(agent, agent.head, agent.strandBytes) }
}

function agentHead(state: ShardState, command: CommandOf<'agentHead'>): Outcome {
  const agent = agentToRead(state, command)
  if ('code' in agent) return agent
  return { kind: 'reply', status: 200, body: chainHead(agent.name, agent.head) }
}
