import { assert } from '../../src/base/assert.js'
import type { Refusal } from '../../src/base/errors.js'
import type { ProposalRow, Standing } from '../../src/protocol/proposal-messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { covers, grantOf, isRefused, notAllowed, policyActionOf } from '../shard/row-access.js'
import type { ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import { keepProposal, openOf } from './pending.js'
import { applyMutation, obstacle } from './apply.js'

/** An open proposal and its agent. */
export interface Open {
  agent: Agent
  row: ProposalRow
}

/** How a proposal ends. */
interface Ending {
  state: 'applied' | 'rejected' | 'cancelled' | 'expired'
  /** Seq of the record of the mutation. */
  effectSeq?: number
  reason?: string
}

/** The most records that the end of a proposal writes, beside those of a change of zone. */
const END_RECORDS = 2

/** The most clock readings that `resolve` and a vote before it take: as many have to be reserved. */
export function recordsToResolve(state: ShardState, { agent, row }: Open, group: CommitGroup): number {
  const ended = row.mutation.action === 'zone' ? openOf(state, group, agent).length : 0
  return 1 + END_RECORDS + ended
}

/** Approvals by different lines that a change of an immutable agent needs. */
const DUAL_APPROVALS = 2

/** Approvals after which a proposal is applied. */
export function approvalsNeeded({ zone }: Pick<ProposalRow, 'zone'>): number {
  return zone === 'immutable_core' ? DUAL_APPROVALS : 1
}

/**
 * Applies a proposal, or ends it if it can no longer be applied, or its proposer may no longer do it.
 * @param proposer its standing; absent for one that cannot end
 */
export function resolve(
  state: ShardState,
  { agent, row }: Open,
  { group, proposer }: { group: CommitGroup; proposer: Standing | undefined },
): ProposalRow {
  const { mutation, line } = row
  if (proposer?.valid === false)
    return end(state, { agent, row }, { state: 'cancelled', reason: proposerEnded, group })
  const inTheWay =
    obstacle(state, group, { agent, mutation }) ?? policyRefusal(state, { agent, row }, proposer)
  if (inTheWay !== undefined)
    return end(state, { agent, row }, { state: 'rejected', reason: inTheWay.code, group })
  const author = { principal: row.proposer, ...(line !== undefined && { line }) }
  const asked = { agent, mutation, ...author, proposalSeq: row.seq }
  const effect = applyMutation(state, asked, group)
  const applied = end(state, { agent, row }, { state: 'applied', effectSeq: effect.seq, group })
  if (mutation.action === 'zone') endOthers(state, agent, group)
  return applied
}

/** Why a proposal was cancelled whose proposer was deleted or has expired. */
export const proposerEnded = 'proposer_ended'

/** A user needs a policy that allows it now, by the claims that its tokens carry now. */
function policyRefusal(
  state: ShardState,
  { agent, row: { mutation } }: Open,
  proposer: Standing | undefined,
): Refusal | undefined {
  if (proposer?.claims === undefined || !('target' in mutation)) return undefined
  const record = state.store.findRecord(agent, mutation.target)
  const grant = grantOf(agent, policyActionOf(mutation.action), { claims: proposer.claims })
  if (isRefused(grant)) return grant
  return record !== undefined && covers(grant, record) ? undefined : notAllowed
}

/** The others were made under the rule of another zone. */
function endOthers(state: ShardState, agent: Agent, group: CommitGroup): void {
  for (const row of openOf(state, group, agent)) {
    end(state, { agent, row }, { state: 'rejected', reason: 'zone_changed', group })
  }
}

/** Ends a proposal by a record of its own, whose clock reading was reserved. */
export function end(
  state: ShardState,
  { agent, row }: Open,
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
  assert(!('code' in record), 'the place of the end of a proposal was reserved')
  const ended: ProposalRow = {
    ...row,
    mutation: withoutSecret(row.mutation),
    state: ending,
    endedAtMs: state.clock(),
    endSeq: record.seq,
    ...(reason !== undefined && { reason }),
  }
  keepProposal(group, agent.no, ended)
  return ended
}

/** Once a proposal has ended, the seed of a key and the digest of an API key are kept only where they are in force. */
function withoutSecret(mutation: ProposalRow['mutation']): ProposalRow['mutation'] {
  if (mutation.action === 'rotate_key') return { action: mutation.action, publicKey: mutation.publicKey }
  if (mutation.action !== 'make_api_key') return mutation
  const { digest: _digest, ...rest } = mutation
  return rest
}
