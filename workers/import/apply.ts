import { unreachable } from '../../src/base/assert.js'
import type { EffectAt } from '../../src/protocol/import-messages.js'
import { isReservedType } from '../../src/strand/record-type.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import type { StoredRecord } from '../store/tables/record-codec.js'
import { recordBySeq } from '../store/tables/records.js'
import { mutations } from '../store/tables/mutations.js'
import { erasures } from '../store/tables/erasures.js'
import { edges } from '../store/tables/edges.js'
import { zoneChanges } from '../store/tables/zone-changes.js'

/*
 * Applies the effects of imported system records to the tables, as the commands did that wrote these records.
 */

/**
 * Checks the target of an effect that is before its export: a reader has checked the others.
 * @returns what is wrong with it, or undefined
 */
export function effectFault(
  state: ShardState,
  { agent, effect, fromSeq }: { agent: Agent | undefined; effect: EffectAt; fromSeq: number },
  group: CommitGroup,
): string | undefined {
  if (effect.kind !== 'record' || effect.targetSeq >= fromSeq) return undefined
  const target = agent && find(state, { agent, seq: effect.targetSeq }, group)
  if (target?.hash !== effect.target) return 'The target of the record is not on the strand'
  return isReservedType(target.type) ? 'The record deletes or erases a system record' : undefined
}

function find(
  state: ShardState,
  { agent, seq }: { agent: Agent; seq: number },
  group: CommitGroup,
): StoredRecord | undefined {
  return group.recordAt(agent.no, seq) ?? recordBySeq(state.store.environment, agent.no, seq)
}

export function applyEffect(
  state: ShardState,
  { agent, record, effect }: { agent: Agent; record: StoredRecord; effect: EffectAt },
  group: CommitGroup,
): void {
  const { seq, hlc } = record
  switch (effect.kind) {
    case 'genesis':
      return
    case 'record':
      applyMutationEffect(state, { agent, seq, effect }, group)
      return
    case 'zone':
      agent.zone = effect.zone
      group.changes.of(zoneChanges).push({ agentNo: agent.no, seq, zone: effect.zone })
      group.changeAgent(agent.name, { zone: effect.zone })
      return
    case 'key':
      applyKeyEffect(agent, { seq, publicKey: effect.publicKey }, group)
      return
    case 'edge': {
      const { dst, edgeType, live, weight } = effect
      group.changes
        .of(edges)
        .add({ agentNo: agent.no, src: agent.name, dst, edgeType, seq, hlc, live, weight })
      return
    }
    default:
      unreachable(effect)
  }
}

function applyMutationEffect(
  state: ShardState,
  { agent, seq, effect }: { agent: Agent; seq: number; effect: Extract<EffectAt, { kind: 'record' }> },
  group: CommitGroup,
): void {
  const { action, target: hash, targetSeq } = effect
  const agentNo = agent.no
  group.changes.of(mutations).changed.push(hash)
  if (action !== 'erase') {
    agent.mutated = true
    group.changes
      .of(mutations)
      .rows.push({ agentNo, targetSeq, mutationSeq: seq, deleted: action === 'delete' })
    return
  }
  const target = find(state, { agent, seq: targetSeq }, group)
  // Usually the target was imported erased.
  const erasure = { agentNo, seq: targetSeq }
  const isPending = group.changes.find(erasures)?.has(erasure) === true
  if (target?.erased !== true && !isPending) group.changes.of(erasures).add(erasure)
}

function applyKeyEffect(
  agent: Agent,
  { seq, publicKey }: { seq: number; publicKey: string },
  group: CommitGroup,
): void {
  agent.retiredKeys = [...agent.retiredKeys, { publicKey: agent.publicKey, lastSeq: seq }]
  agent.publicKey = publicKey
  agent.keyPair = { ...agent.keyPair, publicKey }
  agent.keyIndex = agent.retiredKeys.length
  group.changeAgent(agent.name, { publicKey, retiredKeys: agent.retiredKeys })
}
