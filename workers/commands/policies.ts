import { policyWarnings } from '../../src/auth/row-policy.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { authorOf } from '../../src/protocol/proposal-messages.js'
import { policiesReplaced, policiesShown } from '../../src/wire/render.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { requestMutation } from '../mutations/request.js'
import { noSuchAgent, type Decision, type ShardState } from '../shard/state.js'
import { targetAgent } from './records.js'

/**
 * Replaces the row policies of an agent by a signed record (docs/adr/0012-row-policies.md), at once or by a proposal.
 * They hold for whatever is decided after it, in the same commit group too. 404 agent_not_found, 412 head_mismatch.
 */
export function policiesSet(
  state: ShardState,
  command: CommandOf<'policiesSet'>,
  group: CommitGroup,
): Decision {
  const agent = targetAgent(state, { ...command, emerge: false }, group)
  if ('code' in agent) return agent
  const { policies } = command
  const warnings = policyWarnings(policies)
  return requestMutation(
    state,
    {
      agent,
      mutation: { action: 'policies', policies },
      ...authorOf(command),
      done: (record) => policiesReplaced(agent.name, { policies, warnings }, record),
    },
    group,
  )
}

/** The row policies of an agent. */
export function policiesGet(state: ShardState, command: CommandOf<'policiesGet'>): Outcome {
  const agent = state.store.agents.find(command.agent)
  if (agent === undefined) return noSuchAgent(command.agent)
  return { kind: 'reply', status: 200, body: policiesShown(agent.name, agent.policies) }
}
