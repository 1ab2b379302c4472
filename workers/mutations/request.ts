import { refuse, type Refusal } from '../../src/base/errors.js'
import type { Outcome } from '../../src/protocol/messages.js'
import type { Mutation } from '../../src/protocol/proposal-messages.js'
import type { Zone } from '../../src/strand/zone.js'
import type { Proposed } from '../../src/wire/proposals.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { PendingRecord } from '../store/write-set.js'
import type { Decision, ShardState } from '../shard/state.js'
import { applyMutation, isOfAgent, obstacle, type MutationRequest } from './apply.js'
import { propose, recordsToPropose } from './propose.js'

/**
 * The entry point of all mutations (docs/adr/0014-proposals.md): depending on the zone of the agent, applies
 * the mutation, makes a proposal (202), or refuses it: 403 zone_immutable, 409 proposal_open, or the refusals
 * of the mutation.
 * @param done makes the answer to an applied mutation, once its record is sealed
 * @param describe adds members to the answer to a proposal
 */
export function requestMutation(
  state: ShardState,
  {
    done,
    describe,
    ...request
  }: MutationRequest & {
    done: (record: PendingRecord) => string
    describe?: (proposed: Proposed) => Proposed
  },
  group: CommitGroup,
): Decision {
  const { agent, mutation } = request
  const refusal =
    zoneRefusal(agent.zone, mutation) ?? obstacle(state, group, request) ?? group.reserve(recordsToPropose)
  if (refusal !== undefined) return refusal
  if (agent.zone !== 'free') return propose(state, { ...request, describe }, group)
  const record = applyMutation(state, request, group)
  return (): Outcome => ({ kind: 'reply', status: 200, body: done(record) })
}

/** Records and edges of an immutable agent never change; the agent itself can change, with two approvals. */
function zoneRefusal(zone: Zone, mutation: Mutation): Refusal | undefined {
  const ofAgent = isOfAgent(mutation)
  if (zone !== 'immutable_core' || ofAgent) return undefined
  return refuse('zone_immutable', 'The zone immutable_core of this agent allows no mutation')
}
