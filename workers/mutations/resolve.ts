import { assert } from '../../src/base/assert.js'
import type { Refusal } from '../../src/base/errors.js'
import { canEnd, type ProposalRow, type Standing } from '../../src/protocol/proposal-messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { covers, grantOf, isRefused, notAllowed, policyActionOf } from './row-access.js'
import type { ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import { putProposal, openProposals } from './pending.js'
import { applyMutation, obstacle } from './apply.js'

export interface OpenProposal {
  agent: Agent
  row: ProposalRow
}

/** How a proposal ends. */
interface Ending {
  state: 'applied' | 'rejected' | 'cancelled' | 'expired'
  effectSeq?: number
  reason?: string
}

/** The maximum number of records at the end of a proposal, apart from those of a change of zone. */
const END_RECORDS = 2

/** The maximum number of clock readings for `resolve` and a vote before it, which the caller must reserve. */
export function recordsToResolve(
  state: ShardState,
  { agent, row }: OpenProposal,
  group: CommitGroup,
): number {
  const ended = row.mutation.action === 'zone' ? openProposals(state, group, agent).length : 0
  return 1 + END_RECORDS + ended
}

/** The number of approvals, by different key lineages, that a change of an immutable agent needs. */
const DUAL_APPROVALS = 2

/** The number of approvals after which a proposal is applied. */
export function approvalsNeeded({ zone }: Pick<ProposalRow, 'zone'>): number {
  return zone === 'immutable_core' ? DUAL_APPROVALS : 1
}

/**
 * Applies a proposal, or ends it if it can no longer be applied or its proposer is no longer allowed to make
 * the change.
 * @param proposer the standing of the proposer; undefined for a proposer that cannot be deleted or expire
 */
export function resolve(
  state: ShardState,
  { agent, row }: OpenProposal,
  { group, proposer }: { group: CommitGroup; proposer: Standing | undefined },
): ProposalRow {
  const { mutation, line } = row
  if (proposer?.valid === false)
    return endProposal(state, { agent, row }, { state: 'cancelled', reason: proposerEnded, group })
  if (row.importedAtMs !== undefined)
    return endProposal(state, { agent, row }, { state: 'rejected', reason: 'imported', group })
  const refusal =
    obstacle(state, group, { agent, mutation }) ?? policyRefusal(state, { agent, row }, proposer)
  if (refusal !== undefined)
    return endProposal(state, { agent, row }, { state: 'rejected', reason: refusal.code, group })
  const author = { principal: row.proposer, ...(line !== undefined && { line }) }
  const request = { agent, mutation, ...author, proposalSeq: row.seq }
  const effect = applyMutation(state, request, group)
  const applied = endProposal(state, { agent, row }, { state: 'applied', effectSeq: effect.seq, group })
  if (mutation.action === 'zone') endOthers(state, agent, group)
  return applied
}

/** The standing of the proposer; undefined if it is not needed or not known. */
export function standingOf(row: ProposalRow, standings: readonly Standing[]): Standing | undefined {
  return canEnd(row.proposer) ? standings.find(({ principal }) => principal === row.proposer) : undefined
}

/** The reason for cancelling a proposal whose proposer was deleted or has expired. */
export const proposerEnded = 'proposer_ended'

/** A user needs a policy that allows the change now, by the claims that its tokens have now. */
function policyRefusal(
  state: ShardState,
  { agent, row: { mutation } }: OpenProposal,
  proposer: Standing | undefined,
): Refusal | undefined {
  if (proposer?.claims === undefined || !('target' in mutation)) return undefined
  const record = state.store.findRecord(agent, mutation.target)
  const grant = grantOf(agent, policyActionOf(mutation.action), { claims: proposer.claims })
  if (isRefused(grant)) return grant
  return record !== undefined && covers(grant, record) ? undefined : notAllowed
}

/** Ends the other open proposals, which were made under the rules of the previous zone. */
function endOthers(state: ShardState, agent: Agent, group: CommitGroup): void {
  for (const row of openProposals(state, group, agent)) {
    endProposal(state, { agent, row }, { state: 'rejected', reason: 'zone_changed', group })
  }
}

/** Ends a proposal and appends a record of it; the caller has reserved the clock reading. */
export function endProposal(
  state: ShardState,
  { agent, row }: OpenProposal,
  { group, state: ending, effectSeq, reason }: Ending & { group: CommitGroup },
): ProposalRow {
  const body = {
    proposal: row.hash,
    proposal_seq: row.seq,
    state: ending,
    ...(effectSeq !== undefined && { effect_seq: effectSeq }),
    ...(reason !== undefined && { reason }),
  }
  const record = group.append(agent, {
    type: 'sys/applied',
    body: Buffer.from(canonicalJson(body)),
    signing: 'record',
  })
  assert(!('code' in record), 'the clock reading for the end of a proposal was reserved')
  const ended: ProposalRow = {
    ...row,
    mutation: withoutSecret(row.mutation),
    state: ending,
    endedAtMs: state.clock(),
    endSeq: record.seq,
    ...(reason !== undefined && { reason }),
  }
  putProposal(group, agent.no, ended)
  return ended
}

/**
 * Removes the seed of a key or the digest of an API key, which are stored elsewhere if the proposal was
 * applied.
 */
function withoutSecret(mutation: ProposalRow['mutation']): ProposalRow['mutation'] {
  if (mutation.action === 'rotate_key') {
    const { sealedSeed: _sealedSeed, ...rest } = mutation
    return rest
  }
  if (mutation.action !== 'make_api_key') return mutation
  const { digest: _digest, ...rest } = mutation
  return rest
}
