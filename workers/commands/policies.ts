import { grantBytesAtMost, policyWarnings } from '../../src/auth/row-policy.js'
import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { authorOf } from '../../src/protocol/proposal-messages.js'
import type { Zone } from '../../src/strand/zone.js'
import type { PoliciesProposed, Proposed } from '../../src/wire/proposals.js'
import { policiesReplaced, policiesShown } from '../../src/wire/render.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { pendingPolicies } from '../mutations/pending.js'
import { requestMutation } from '../mutations/request.js'
import { noSuchAgent, type Decision, type ShardState } from '../shard/state.js'
import { faulty } from './drafts.js'
import { targetAgent } from './records.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Row policies. */
export const policyCommands = {
  writes: {
    policiesSet: { decide: policiesSet },
  },
  reads: {
    policiesGet: { answer: policiesGet },
  },
} satisfies FeatureCommands

/**
 * Replaces the row policies of an agent by a signed record (docs/adr/0012-row-policies.md), immediately or by
 * a proposal. They apply to all later decisions, also in the same commit group. 400 if the claims of a user
 * could make them too large, 404 agent_not_found, 412 head_mismatch.
 */
function policiesSet(state: ShardState, command: CommandOf<'policiesSet'>, group: CommitGroup): Decision {
  const agent = targetAgent(state, { ...command, emerge: false }, group)
  if ('code' in agent) return agent
  const { policies } = command
  const bytes = grantBytesAtMost(policies, state.auth.metadataBytesMax)
  if (bytes > limits.grantBytesMax) return faulty('/policies', sizeDetail(bytes))
  const warnings = policyWarnings(policies)
  return requestMutation(
    state,
    {
      agent,
      mutation: { action: 'policies', policies },
      ...authorOf(command),
      done: (record) => policiesReplaced(agent.name, { policies, warnings }, record),
      describe: (proposed): PoliciesProposed => ({
        ...proposed,
        detail: pendingDetail(agent.zone, proposed),
        warnings,
      }),
    },
    group,
  )
}

function sizeDetail(bytes: number): string {
  const most = limits.grantBytesMax
  return `Expected policies of at most ${most} bytes with the largest claims of a user, got up to ${bytes}`
}

function pendingDetail(zone: Zone, { effective_at_ms: atMs }: Proposed): string {
  const when =
    atMs === null
      ? 'when another key approves the proposal'
      : `at ${new Date(atMs).toISOString()}, unless they are rejected before`
  return `Zone ${zone}: these policies apply ${when}. Until then the current policies apply`
}

/** The row policies of an agent, and the proposed ones. */
function policiesGet(state: ShardState, command: CommandOf<'policiesGet'>): Outcome {
  const agent = state.store.agents.find(command.agent)
  if (agent === undefined) return noSuchAgent(command.agent)
  const body = policiesShown(agent.name, agent.policies, pendingPolicies(state, agent))
  return { kind: 'reply', status: 200, body }
}
