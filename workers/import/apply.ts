import { unreachable } from '../../src/base/assert.js'
import { limits } from '../../src/base/limits.js'
import type { MeaningAt } from '../../src/protocol/import-messages.js'
import { authorOf, type ProposalRow } from '../../src/protocol/proposal-messages.js'
import { isReservedType } from '../../src/strand/record-type.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { endHeldProposal, holdProposal, proposalAt } from '../mutations/pending.js'
import type { ShardState } from '../shard/state.js'
import type { Agent } from '../store/agent.js'
import type { StoredRecord } from '../store/record-codec.js'
import { recordBySeq } from '../store/records.js'
import { proposalSeqOf } from './judge.js'
import type { CheckedPart } from './part.js'

/*
 * What imported records of the server tell, taken into the tables that the store keeps beside the strand, as the
 * commands did that wrote the records.
 */

/** A record that tells something, before anything of its part is taken. */
interface Telling {
  /** Absent when the part makes it. */
  agent: Agent | undefined
  part: CheckedPart
  meaning: MeaningAt
}

/** What is wrong with what a record tells, as the strand stands before it. */
export function meaningFault(
  state: ShardState,
  { agent, part, meaning }: Telling,
  group: CommitGroup,
): string | undefined {
  const { seq } = meaning
  if (meaning.kind === 'record') {
    const target =
      meaning.targetSeq < seq ? find(state, { agent, part, seq: meaning.targetSeq }, group) : undefined
    if (target?.hash !== meaning.target) return 'The record names another that is not on the strand'
    if (isReservedType(target.type)) return 'The record deletes or erases one of the server'
  }
  if (meaning.kind === 'vote' || meaning.kind === 'applied') {
    const { proposal, proposalSeq } = meaning
    const target = proposalSeq < seq ? find(state, { agent, part, seq: proposalSeq }, group) : undefined
    if (target?.hash !== proposal || target.type !== 'sys/proposal') {
      return 'The record names a proposal that is not on the strand'
    }
    const row = agent === undefined ? undefined : rowOf(state, { agent, seq: proposalSeq }, group)
    const votes = meaning.kind === 'vote' ? (row?.votes.length ?? 0) : 0
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

/** Takes what a record tells. */
export function takeMeaning(
  state: ShardState,
  {
    agent,
    record,
    meaning,
    unsure,
  }: { agent: Agent; record: StoredRecord; meaning: MeaningAt; unsure: boolean },
  group: CommitGroup,
): void {
  const { seq, hlc } = record
  takeEffect(state, { agent, seq, meaning }, group)
  switch (meaning.kind) {
    case 'genesis':
      return
    case 'record':
      takeMutation(state, { agent, seq, meaning }, group)
      return
    case 'zone':
      agent.zone = meaning.zone
      group.zoneChanges.push({ agentNo: agent.no, seq, zone: meaning.zone })
      group.changeAgent(agent.name, { zone: meaning.zone })
      return
    case 'policies':
      agent.policies = meaning.policies
      group.changeAgent(agent.name, { policies: meaning.policies })
      return
    case 'key':
      takeKey(agent, { seq, publicKey: meaning.publicKey }, group)
      return
    case 'edge': {
      const { dst, edgeType, live, weight } = meaning
      group.changeEdge({ agentNo: agent.no, src: agent.name, dst, edgeType, seq, hlc, live, weight })
      return
    }
    case 'proposal':
      takeProposal(state, { agent, record, meaning, unsure }, group)
      return
    case 'vote': {
      const row = rowOf(state, { agent, seq: meaning.proposalSeq }, group)
      const vote = { ...authorOf(meaning), vote: meaning.vote, atMs: hlc.ms }
      if (row?.state === 'proposed') holdProposal(group, agent.no, { ...row, votes: [...row.votes, vote] })
      return
    }
    case 'applied': {
      const row = rowOf(state, { agent, seq: meaning.proposalSeq }, group)
      if (row?.state !== 'proposed') return
      endHeldProposal(group, { agentNo: agent.no, row, endedAtMs: hlc.ms }, meaning)
      return
    }
    default:
      unreachable(meaning)
  }
}

/** A proposal that was carried out is not carried out again. */
function takeEffect(
  state: ShardState,
  { agent, seq, meaning }: { agent: Agent; seq: number; meaning: MeaningAt },
  group: CommitGroup,
): void {
  const proposalSeq = proposalSeqOf(meaning)
  if (proposalSeq === undefined) return
  const row = rowOf(state, { agent, seq: proposalSeq }, group)
  if (row?.state === 'proposed') holdProposal(group, agent.no, { ...row, effectSeq: seq })
}

function takeMutation(
  state: ShardState,
  { agent, seq, meaning }: { agent: Agent; seq: number; meaning: Extract<MeaningAt, { kind: 'record' }> },
  group: CommitGroup,
): void {
  const { action, target: hash, targetSeq } = meaning
  const agentNo = agent.no
  group.changedRecords.push(hash)
  if (action !== 'erase') {
    agent.mutated = true
    group.mutations.push({ agentNo, targetSeq, mutationSeq: seq, deleted: action === 'delete' })
    return
  }
  const target =
    group.recordAt(agentNo, targetSeq) ?? recordBySeq(state.store.environment, agentNo, targetSeq)
  // Mostly it came erased.
  const erasure = { agentNo, seq: targetSeq }
  if (target?.erased !== true && !group.erases(erasure)) group.erase(erasure)
}

function takeKey(
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

function takeProposal(
  state: ShardState,
  {
    agent,
    record,
    meaning,
    unsure,
  }: {
    agent: Agent
    record: StoredRecord
    meaning: Extract<MeaningAt, { kind: 'proposal' }>
    unsure: boolean
  },
  group: CommitGroup,
): void {
  const { mutation, zone, proposer, line, effectiveAtMs, expiresAtMs } = meaning
  const importedAtMs = state.clock()
  // Whoever signed it, here it can be rejected for as long as one that is made here.
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
    // What was made elsewhere long ago is as old here as this import.
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
