import { refuse, type Refusal } from '../../src/base/errors.js'
import type { CommandOf } from '../../src/protocol/messages.js'
import type { UserAccess } from '../../src/protocol/command-options.js'
import { authorOf } from '../../src/protocol/proposal-messages.js'
import { isReservedType } from '../../src/strand/record-type.js'
import { mutationDone } from '../../src/wire/render.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { requestMutation } from '../mutations/request.js'
import { covers, grantOf, isRefused, policyActionOf, refuserOf } from '../mutations/row-access.js'
import type { Decision, ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import type { StoredRecord } from '../store/tables/record-codec.js'
import { noSuchRecord, targetAgent } from './records.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Deleting, restoring and erasing records. */
export const mutationCommands = {
  writes: {
    recordMutate: { decide: recordMutate },
  },
} satisfies FeatureCommands

const statesAfter = { delete: 'deleted', restore: 'active', erase: 'erased' } as const

/**
 * Deletes, restores or erases a record, immediately or by a proposal (docs/adr/0014-proposals.md). 409
 * already_deleted, not_deleted, already_erased.
 */
function recordMutate(state: ShardState, command: CommandOf<'recordMutate'>, group: CommitGroup): Decision {
  const { action, access, hash } = command
  const needs = policyActionOf(action)
  const agent = targetAgent(state, { ...command, emerge: false, needs }, group)
  if ('code' in agent) return agent
  const record = state.store.findRecord(agent, hash)
  if (record === undefined) return noSuchRecord(hash)
  const forbidden = policyRefusal(state, agent, { record, access, needs })
  if (forbidden !== undefined) return forbidden
  if (isReservedType(record.type))
    return refuse('forbidden', 'Records of the server cannot be deleted, restored or erased')
  const mutation = { action, target: record.hash, targetSeq: record.seq }
  return requestMutation(
    state,
    {
      agent,
      mutation,
      ...authorOf(command),
      done: ({ seq }) => mutationDone(record.hash, statesAfter[action], seq),
    },
    group,
  )
}

/**
 * A user needs a policy that allows the change of the record; a record that the user may not read is answered
 * with 404.
 */
function policyRefusal(
  state: ShardState,
  agent: Agent,
  {
    record,
    access,
    needs: action,
  }: {
    record: Pick<StoredRecord, 'hash' | 'type' | 'body'>
    access: UserAccess | undefined
    needs: 'delete' | 'erase'
  },
): Refusal | undefined {
  const grant = grantOf(agent, action, access)
  if (isRefused(grant)) return grant
  if (covers(grant, record)) return undefined
  const readable = grantOf(agent, 'read', access)
  if (isRefused(readable)) return readable
  return covers(readable, record)
    ? refuserOf(state, agent, { action, access })(record)
    : noSuchRecord(record.hash)
}
