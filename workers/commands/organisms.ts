import { refuse, type Refusal } from '../../src/base/errors.js'
import { memberAddress } from '../../src/auth/namespace.js'
import type { AuthAnswer, AuthChange } from '../../src/protocol/auth-messages.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import type { OrganismRow } from '../../src/protocol/organism-messages.js'
import type { OrganismCreated } from '../../src/wire/organisms.js'
import { NamespaceState } from '../auth/namespace-state.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { findAgent, noSuchOrganism, type Decision, type ShardState } from '../shard/state.js'
import { findOrganism, listOrganisms, organisms } from '../store/tables/organisms.js'
import { makeAgent } from '../shard/new-agent.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Organisms. */
export const organismCommands = {
  writes: {
    organismCreate: { decide: organismCreate },
  },
  reads: {
    organismGet: { answer: organismGet },
    organismList: { answer: organismList },
  },
} satisfies FeatureCommands

/** Creates the row of an organism; 409 organism_exists. The front creates its agents afterwards. */
function organismCreate(
  state: ShardState,
  { organismId, name, members }: CommandOf<'organismCreate'>,
  group: CommitGroup,
): Decision {
  if (organismOf(state, group, organismId) !== undefined) {
    return refuse('organism_exists', `Organism "${organismId}" already exists`)
  }
  const row: OrganismRow = { organismId, name, members, createdAtMs: state.clock() }
  group.changes.of(organisms).set(organismId, row)
  const answer: OrganismCreated = {
    organism_id: organismId,
    name,
    agents: members.map((member) => ({
      agent_id: memberAddress(organismId, member.name),
      name: member.name,
      zone: member.zone,
    })),
    created_at_ms: row.createdAtMs,
  }
  return () => ({ kind: 'reply', status: 201, body: JSON.stringify(answer) })
}

/** An organism by its id; 404 organism_not_found. */
function organismGet(state: ShardState, command: CommandOf<'organismGet'>): Outcome {
  const { organismId, agent } = command
  const row = findOrganism(state.store.environment, organismId)
  if (row === undefined) return noSuchOrganism(organismId)
  return { kind: 'organism', row, initialised: state.store.agents.row(agent) !== undefined }
}

function organismList(state: ShardState, command: CommandOf<'organismList'>): Outcome {
  return { kind: 'organisms', ...listOrganisms(state.store, command) }
}

/**
 * Creates the auth namespace of an organism: its agent, the genesis record and the audit record, in one
 * transaction (docs/adr/0017-organisms.md). 404 organism_not_found, 409 namespace_exists, 503 clock_skew.
 */
export function namespaceInit(
  state: ShardState,
  { agent: name, namespace, origin }: AuthChange,
  group: CommitGroup,
): AuthAnswer | Refusal {
  if (organismOf(state, group, namespace) === undefined) return noSuchOrganism(namespace)
  if (findAgent(state, group, name) !== undefined) {
    return refuse('namespace_exists', `Organism "${namespace}" already has an auth namespace`)
  }
  const skew = group.reserve(INIT_RECORDS)
  if (skew !== undefined) return skew
  const agent = makeAgent(state, { agent: name, zone: 'immutable_core' }, group)
  if ('code' in agent) return agent
  const created = new NamespaceState(state, namespace, { group, agent, origin })
  created.audit('auth/namespace_initialised', {})
  return { kind: 'initialised', createdAtMs: agent.createdAtMs }
}

/** The genesis record and the audit record. */
const INIT_RECORDS = 2

function organismOf(state: ShardState, group: CommitGroup, organismId: string): OrganismRow | undefined {
  return group.changes.find(organisms)?.get(organismId) ?? findOrganism(state.store.environment, organismId)
}
