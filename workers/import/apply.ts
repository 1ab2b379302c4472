import { unreachable } from '../../src/base/assert.js'
import { limits } from '../../src/base/limits/limits.js'
import type { EffectAt } from '../../src/protocol/import-messages.js'
import { authorOf, type ProposalRow } from '../../src/protocol/proposal-messages.js'
import { isReservedType } from '../../src/strand/record-type.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { endHeldProposal, holdProposal, proposalAt } from '../mutations/pending.js'
import type { ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import type { StoredRecord } from '../store/tables/record-codec.js'
import { recordBySeq } from '../store/tables/records.js'
import { proposalSeqOf } from './judge.js'
import type { CheckedPart } from './part.js'

/*
 * Applies the effects of imported system records to the tables, as the commands did that wrote these records.
 */

/** An effect to check, before any effect of its part is applied. */
interface UncheckedEffect {
  /** Absent if the part creates the agent. */
  agent: Agent | undefined
  part: CheckedPart
  effect: EffectAt
}

/** Checks an effect against the strand before it. @returns what is wrong with it, or undefined */
export function effectFault(
  state: ShardState,
  { agent, part, effect }: UncheckedEffect,
  group: CommitGroup,
): string | undefined {
  const { seq } = effect
  if (effect.kind === 'record') {
    const target =
      effect.targetSeq < seq ? find(state, { agent, part, seq: effect.targetSeq }, group) : undefined
    if (target?.hash !== effect.target) return 'The target of the record is not on the strand'
    if (isReservedType(target.type)) return 'The record deletes or erases a system record'
  }
  if (effect.kind === 'vote' || effect.kind === 'applied') {
    const { proposal, proposalSeq } = effect
    const target = proposalSeq < seq ? find(state, { agent, part, seq: proposalSeq }, group) : undefined
    if (target?.hash !== proposal || target.type !== 'sys/proposal') {
      return 'The proposal of the record is not on the strand'
    }
    const row = agent === undefined ? undefined : rowOf(state, { agent, seq: proposalSeq }, group)
    const votes = effect.kind === 'vote' ? (row?.votes.length ?? 0) : 0
    if (votes >= limits.importVotesMax) return `The proposal has more than ${limits.importVotesMax} votes`
  }
  return undefined
}

function find(
  state: ShardState,
  { agent, part, seq }: { agent: Agent | undefined; part: CheckedPart; seq: number },
  group: CommitGroup,
): StoredRecord | undefined {
  const own = part.at(seq)
  if (own !== undefined || agent === undefined) return own
  return group.recordAt(agent.no, seq) ?? recordBySeq(state.store.environment, agent.no, seq)
}

/**
 * Applies an effect.
 * @param unsure whether the proposal may have been signed outside a server with this master seed
 */
export function applyEffect(
  state: ShardState,
  {
    agent,
    record,
    effect,
    unsure,
  }: { agent: Agent; record: StoredRecord; effect: EffectAt; unsure: boolean },
  group: CommitGroup,
): void {
  const { seq, hlc } = record
  markProposalApplied(state, { agent, seq, effect }, group)
  switch (effect.kind) {
    case 'genesis':
      return
    case 'record':
      applyMutationEffect(state, { agent, seq, effect }, group)
      return
    case 'zone':
      agent.zone = effect.zone
      group.zoneChanges.push({ agentNo: agent.no, seq, zone: effect.zone })
      group.changeAgent(agent.name, { zone: effect.zone })
      return
    case 'policies':
      agent.policies = effect.policies
      agent.policiesBy = undefined
      group.changeAgent(agent.name, { policies: effect.policies, policiesBy: undefined })
      return
    case 'key':
      applyKeyEffect(agent, { seq, publicKey: effect.publicKey }, group)
      return
    case 'edge': {
      const { dst, edgeType, live, weight } = effect
      group.changeEdge({ agentNo: agent.no, src: agent.name, dst, edgeType, seq, hlc, live, weight })
      return
    }
    case 'proposal':
      applyProposalEffect(state, { agent, record, effect, unsure }, group)
      return
    case 'vote': {
      const row = rowOf(state, { agent, seq: effect.proposalSeq }, group)
      const vote = { ...authorOf(effect), vote: effect.vote, atMs: hlc.ms }
      if (row?.state === 'proposed') holdProposal(group, agent.no, { ...row, votes: [...row.votes, vote] })
      return
    }
    case 'applied': {
      const row = rowOf(state, { agent, seq: effect.proposalSeq }, group)
      if (row?.state !== 'proposed') return
      endHeldProposal(group, { agentNo: agent.no, row, endedAtMs: hlc.ms }, effect)
      return
    }
    default:
      unreachable(effect)
  }
}

/** Records the mutation of a proposal in its row, so that the proposal is not applied again. */
function markProposalApplied(
  state: ShardState,
  { agent, seq, effect }: { agent: Agent; seq: number; effect: EffectAt },
  group: CommitGroup,
): void {
  const proposalSeq = proposalSeqOf(effect)
  if (proposalSeq === undefined) return
  const row = rowOf(state, { agent, seq: proposalSeq }, group)
  if (row?.state === 'proposed') holdProposal(group, agent.no, { ...row, effectSeq: seq })
}

function applyMutationEffect(
  state: ShardState,
  { agent, seq, effect }: { agent: Agent; seq: number; effect: Extract<EffectAt, { kind: 'record' }> },
  group: CommitGroup,
): void {
  const { action, target: hash, targetSeq } = effect
  const agentNo = agent.no
  group.changedRecords.push(hash)
  if (action !== 'erase') {
    agent.mutated = true
    group.mutations.push({ agentNo, targetSeq, mutationSeq: seq, deleted: action === 'delete' })
    return
  }
  const target =
    group.recordAt(agentNo, targetSeq) ?? recordBySeq(state.store.environment, agentNo, targetSeq)
  // Usually the target was imported erased.
  const erasure = { agentNo, seq: targetSeq }
  if (target?.erased !== true && !group.erases(erasure)) group.erase(erasure)
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

function applyProposalEffect(
  state: ShardState,
  {
    agent,
    record,
    effect,
    unsure,
  }: {
    agent: Agent
    record: StoredRecord
    effect: Extract<EffectAt, { kind: 'proposal' }>
    unsure: boolean
  },
  group: CommitGroup,
): void {
  const { mutation, zone, proposer, line, effectiveAtMs, expiresAtMs } = effect
  const importedAtMs = state.clock()
  // An unverified proposal can be rejected here for as long as one that is created here.
  const earliestMs = unsure ? importedAtMs + state.proposals.governedAutoApproveSecs * 1_000 : 0
  holdProposal(group, agent.no, {
    agent: agent.name,
    seq: record.seq,
    hash: record.hash,
    mutation,
    zone,
    state: 'proposed',
    proposer,
    ...(line !== undefined && { line }),
    votes: [],
    createdAtMs: record.hlc.ms,
    // The delay of an imported proposal starts with this import.
    importedAtMs,
    expiresAtMs,
    ...(effectiveAtMs !== undefined && { effectiveAtMs: Math.max(effectiveAtMs, earliestMs) }),
  })
}

function rowOf(
  state: ShardState,
  { agent, seq }: { agent: Agent; seq: number },
  group: CommitGroup,
): ProposalRow | undefined {
  return proposalAt(state, group, { agentNo: agent.no, seq })
}
