import { refuse, type Refusal } from '../../src/base/errors.js'
import type { Outcome } from '../../src/protocol/messages.js'
import type { Mutation } from '../../src/protocol/proposal-messages.js'
import type { Zone } from '../../src/strand/zone.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { PendingRecord } from '../store/write-set.js'
import type { Decision, ShardState } from '../shard/state.js'
import { applyMutation, isOfAgent, obstacle, type MutationRequest } from './apply.js'
import { propose, recordsToPropose } from './propose.js'

/**
 * The one door of mutations (docs/adr/0014-proposals.md): as the zone of the agent says, applies the mutation at once,
 * makes a proposal of it (202), or refuses it. 403 zone_immutable, 409 proposal_open, and the refusals of the mutation.
 * @param done makes the answer to an applied mutation, once its record is sealed
 */
export function requestMutation(
  state: ShardState,
  { done, ...asked }: MutationRequest & { done: (record: PendingRecord) => string },
  group: CommitGroup,
): Decision {
  const { agent, mutation } = asked
  const refusal =
    zoneRefusal(agent.zone, mutation) ?? obstacle(state, group, asked) ?? group.reserve(recordsToPropose)
  if (refusal !== undefined) return refusal
  if (agent.zone !== 'free') return propose(state, asked, group)
  const record = applyMutation(state, asked, group)
  return (): Outcome => ({ kind: 'reply', status: 200, body: done(record) })
}

/** Records and edges of an immutable agent never change; the agent itself may, with two approvals. */
function zoneRefusal(zone: Zone, mutation: Mutation): Refusal | undefined {
  const ofAgent = isOfAgent(mutation)
  if (zone !== 'immutable_core' || ofAgent) return undefined
  return refuse('zone_immutable', 'Expected an agent whose zone allows mutations, got zone immutable_core')
}
