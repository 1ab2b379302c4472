import { refuse, type Refusal } from '../../src/base/errors.js'
import type { CommandOf, UserAccess } from '../../src/protocol/messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import { isReservedType } from '../../src/strand/record-type.js'
import { mutationDone } from '../../src/wire/render.js'
import type { CommitGroup } from '../commit-group.js'
import { covers, grantOf, notAllowed } from '../row-access.js'
import type { Decision, ShardState } from '../shard-state.js'
import type { Agent } from '../store/agents.js'
import { noSuchRecord, targetAgent } from './records.js'

/** Deletes or restores a record by a record of its own (spec.md, States; contract.md 5, Zones). */
export function recordMutate(
  state: ShardState,
  command: CommandOf<'recordMutate'>,
  group: CommitGroup,
): Decision {
  const agent = targetAgent(state, { ...command, emerge: false, needs: 'delete' }, group)
  if ('code' in agent) return agent
  const target = state.store.findRecord(agent, command.hash)
  if (target === undefined) return noSuchRecord(command.hash)
  const forbidden = policyRefusal(agent, target, command.access) ?? zoneRefusal(agent)
  if (forbidden !== undefined) return forbidden
  if (isReservedType(target.type)) return refuse('forbidden', 'Expected a user record, got one of the server')
  const pending = group.mutations.findLast((one) => one.agentNo === agent.no && one.targetSeq === target.seq)
  const deleted = pending?.deleted ?? state.store.isDeleted(agent, target.seq, agent.head.seq)
  const toDeleted = command.action === 'delete'
  if (deleted && toDeleted) return refuse('already_deleted', 'Expected a record that is not deleted')
  if (!deleted && !toDeleted) return refuse('not_deleted', 'Expected a record that is deleted')
  const record = group.append(agent, {
    type: toDeleted ? 'sys/tombstone' : 'sys/restore',
    body: Buffer.from(canonicalJson({ target: target.hash, target_seq: target.seq })),
    signing: 'record',
  })
  if ('code' in record) return record
  agent.mutated = true
  group.mutations.push({
    agentNo: agent.no,
    targetSeq: target.seq,
    mutationSeq: record.seq,
    deleted: toDeleted,
  })
  const body = mutationDone(target.hash, toDeleted ? 'deleted' : 'active', record.seq)
  return () => ({ kind: 'reply', status: 200, body })
}

/** A user needs a delete policy that allows the record; one that it may not read is not there for it. */
function policyRefusal(
  agent: Agent,
  { hash, body }: { hash: string; body: Uint8Array },
  access: UserAccess | undefined,
): Refusal | undefined {
  if (covers(grantOf(agent, 'delete', access), body)) return undefined
  return covers(grantOf(agent, 'read', access), body) ? notAllowed : noSuchRecord(hash)
}

/** Only zone `free` changes at once; the others have no way to approve a change yet, so they refuse it. */
function zoneRefusal(agent: Agent): Refusal | undefined {
  if (agent.zone === 'free') return undefined
  if (agent.zone === 'immutable_core') {
    return refuse('zone_immutable', 'Expected an agent whose zone allows mutations, got zone immutable_core')
  }
  return refuse(
    'zone_requires_approval',
    `Expected an agent of zone free, got zone ${agent.zone}, whose mutations need an approval`,
  )
}
