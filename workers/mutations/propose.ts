import { assert } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits.js'
import type { Mutation, ProposalRow } from '../../src/protocol/proposal-messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import { proposalId } from '../../src/strand/proposal.js'
import type { Proposed } from '../../src/wire/proposals.js'
import type { CommitGroup } from '../commit-group.js'
import type { Decision, ShardState } from '../shard-state.js'
import { proposalTarget } from '../store/proposals.js'
import { keepProposal, openAbout, openCount } from './book.js'
import { isOfAgent, type Asked } from './carry-out.js'

/**
 * Makes a proposal by a record of its own, the reading of which was reserved; 409 proposal_open where one is open about
 * the same target, 503 overloaded where the agent has too many.
 */
export function propose(state: ShardState, asked: Asked, group: CommitGroup): Decision {
  const refusal = placeRefusal(state, asked, group)
  if (refusal !== undefined) return refusal
  const { agent, mutation, principal } = asked
  const createdAtMs = state.clock()
  const row: Omit<ProposalRow, 'seq' | 'hash'> = {
    agent: agent.name,
    mutation,
    zone: agent.zone,
    state: 'proposed',
    proposer: principal,
    votes: [],
    createdAtMs,
    expiresAtMs: createdAtMs + limits.proposalDays * DAY_MS,
  }
  if (agent.zone === 'governed') {
    row.effectiveAtMs = createdAtMs + state.proposals.governedAutoApproveSecs * 1_000
  }
  const body = Buffer.from(canonicalJson(proposalBody(row)))
  const record = group.append(agent, { type: 'sys/proposal', body, signing: 'record' })
  assert(!('code' in record), 'the place of a proposal was reserved')
  keepProposal(group, agent.no, { ...row, seq: record.seq, hash: record.hash })
  const answer: Proposed = {
    proposal_id: proposalId(agent.name, record.seq),
    state: 'proposed',
    effective_at_ms: row.effectiveAtMs ?? null,
  }
  return () => ({ kind: 'reply', status: 202, body: JSON.stringify(answer) })
}

const DAY_MS = 86_400_000

function placeRefusal(
  state: ShardState,
  { agent, mutation }: Asked,
  group: CommitGroup,
): Refusal | undefined {
  const open = openAbout(state, group, { agent, target: proposalTarget({ mutation }) })
  if (open !== undefined) {
    return refuse('proposal_open', 'Expected no other proposal about the same to be open', {
      extra: { proposal_id: proposalId(agent.name, open.seq) },
    })
  }
  // Changes of the agent itself are one of each kind at most: proposals about its records never keep them out.
  if (isOfAgent(mutation) || openCount(state, group, agent) < limits.proposalsOpenMax) return undefined
  return refuse('overloaded', `Expected at most ${limits.proposalsOpenMax} open proposals of one agent`, {
    retryAfterSecs: 60,
  })
}

/** What the strand tells of a proposal (docs/FORMAT.md, Proposals). */
function proposalBody(row: Omit<ProposalRow, 'seq' | 'hash'>): Record<string, unknown> {
  return {
    ...told(row.mutation),
    principal: row.proposer,
    in_zone: row.zone,
    effective_at_ms: row.effectiveAtMs ?? null,
    expires_at_ms: row.expiresAtMs,
  }
}

/** A mutation without its secrets. */
function told(mutation: Mutation): Record<string, unknown> {
  const { action } = mutation
  switch (mutation.action) {
    case 'zone':
      return { action, zone: mutation.zone }
    case 'policies':
      return { action, policies: mutation.policies }
    case 'remove_edge':
      return { action, edge_type: mutation.edgeType, dst: mutation.dst }
    case 'rotate_key':
      return { action, public_key: mutation.publicKey }
    default:
      return { action, target: mutation.target, target_seq: mutation.targetSeq }
  }
}
