import { policyWarnings } from '../../src/auth/row-policy.js'
import { refuse } from '../../src/base/errors.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import { policiesReplaced, policiesShown } from '../../src/wire/render.js'
import type { CommitGroup } from '../commit-group.js'
import { noSuchAgent, refused, type Decision, type ShardState } from '../shard-state.js'
import { targetAgent } from './records.js'

/**
 * Replaces the row policies of an agent by a signed record (contract.md 3). They hold for whatever is decided after it,
 * in the same commit group too. 404 agent_not_found, 412 head_mismatch, 422 zone_requires_approval.
 */
export function policiesSet(
  state: ShardState,
  command: CommandOf<'policiesSet'>,
  group: CommitGroup,
): Decision {
  const agent = targetAgent(state, { ...command, emerge: false }, group)
  if ('code' in agent) return agent
  if (agent.zone !== 'free') {
    return refuse(
      'zone_requires_approval',
      `Expected an agent of zone free, got zone ${agent.zone}, where a change of policies needs an approval`,
    )
  }
  const { policies } = command
  const record = group.append(agent, {
    type: 'sys/policy',
    body: Buffer.from(canonicalJson({ policies })),
    signing: 'record',
  })
  if ('code' in record) return record
  agent.policies = policies
  group.policies.set(agent.name, policies)
  const body = policiesReplaced(agent.name, { policies, warnings: policyWarnings(policies) }, record)
  return () => ({ kind: 'reply', status: 200, body })
}

/** The row policies of an agent. */
export function policiesGet(state: ShardState, command: CommandOf<'policiesGet'>): Outcome {
  const agent = state.store.agents.find(command.agent)
  if (agent === undefined) return refused(noSuchAgent(command.agent))
  return { kind: 'reply', status: 200, body: policiesShown(agent.name, agent.policies) }
}
