import { assert } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import {
  lineOf,
  type Mutation,
  type ProposalRow,
  type ProposedAs,
} from '../../src/protocol/proposal-messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import { proposalId } from '../../src/strand/proposal.js'
import type { Proposed } from '../../src/wire/proposals.js'
import { keyFacts } from '../shard/audit.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { Decision, ShardState } from '../shard/state.js'
import { proposalTarget, type OpenShare } from '../store/tables/proposals.js'
import { keepProposal, openAbout, openCount, openShares } from './pending.js'
import { isOfAgent, type MutationRequest } from './apply.js'
import { end } from './resolve.js'

/** Makes a proposal, and answers with it: 202. Refused as by `makeProposal`. */
export function propose(state: ShardState, asked: MutationRequest, group: CommitGroup): Decision {
  const row = makeProposal(state, asked, group)
  if ('code' in row) return row
  const { proposalId: id, effectiveAtMs = null } = proposedAs(row)
  const answer: Proposed = { proposal_id: id, state: 'proposed', effective_at_ms: effectiveAtMs }
  return () => ({ kind: 'reply', status: 202, body: JSON.stringify(answer) })
}

/** The answer to whoever made a proposal. */
export function proposedAs({ agent, seq, effectiveAtMs }: ProposalRow): ProposedAs {
  return { proposalId: proposalId(agent, seq), ...(effectiveAtMs !== undefined && { effectiveAtMs }) }
}

/** The most records that a proposal writes: its own, and the end of one that it supersedes. */
export const recordsToPropose = 2

/**
 * Makes a proposal by a record of its own; an open one about the same target that it supersedes is rejected before that.
 * `recordsToPropose` clock readings were reserved. 409 proposal_open if another one is open about the same target, 503
 * overloaded if the agent has too many.
 */
export function makeProposal(
  state: ShardState,
  asked: MutationRequest,
  group: CommitGroup,
): ProposalRow | Refusal {
  const { agent, mutation, principal, line } = asked
  const open = openAbout(state, group, { agent, target: proposalTarget({ mutation }) })
  const refusal = placeRefusal(state, asked, { open, group })
  if (refusal !== undefined) return refusal
  if (open !== undefined) end(state, { agent, row: open }, { state: 'rejected', reason: 'superseded', group })
  const createdAtMs = state.clock()
  const row: Omit<ProposalRow, 'seq' | 'hash'> = {
    agent: agent.name,
    mutation,
    // The audit strand is immutable. A key needs the approval of another admin, as in zone `protected`.
    zone: mutation.action === 'make_api_key' ? 'protected' : agent.zone,
    state: 'proposed',
    proposer: principal,
    ...(line !== undefined && { line }),
    votes: [],
    createdAtMs,
    expiresAtMs: createdAtMs + limits.proposalDays * DAY_MS,
  }
  if (row.zone === 'governed') {
    row.effectiveAtMs = createdAtMs + state.proposals.governedAutoApproveSecs * 1_000
  }
  const body = Buffer.from(canonicalJson(proposalBody(row)))
  const record = group.append(agent, { type: 'sys/proposal', body, signing: 'record' })
  assert(!('code' in record), 'the place of a proposal was reserved')
  const proposal = { ...row, seq: record.seq, hash: record.hash }
  keepProposal(group, agent.no, proposal)
  return proposal
}

const DAY_MS = 86_400_000

/**
 * Whether a proposal takes the place of an open one about the same target. No user keeps a record from being erased by
 * proposals to delete or restore it, and no user keeps a key from what it may do; a user supersedes users only, since it
 * could cancel its own proposal afterwards.
 */
function supersedes({ mutation, ...author }: MutationRequest, open: ProposalRow): boolean {
  if (!('target' in mutation)) return false
  const [byUser, ofUser] = [isUser({ line: lineOf(author) }), isUser({ line: open.line ?? open.proposer })]
  if (byUser && !ofUser) return false
  if (open.mutation.action === 'erase') return mutation.action === 'erase' && !byUser && ofUser
  return mutation.action === 'erase' || (!byUser && ofUser)
}

function placeRefusal(
  state: ShardState,
  asked: MutationRequest,
  { open: same, group }: { open: ProposalRow | undefined; group: CommitGroup },
): Refusal | undefined {
  const { agent, mutation, ...author } = asked
  if (same !== undefined && !supersedes(asked, same)) {
    return refuse('proposal_open', 'Expected no other proposal about the same to be open', {
      extra: { proposal_id: proposalId(agent.name, same.seq) },
    })
  }
  // Of changes of the agent itself, one of each kind can be open: proposals about its records never block them.
  if (isOfAgent(mutation) || openCount(state, group, agent) < limits.proposalsOfUserMax) return undefined
  const open = openShares(state, group, agent)
  const full = fullShare(open, { line: lineOf(author), erases: mutation.action === 'erase' })
  return full === undefined ? undefined : refuse('overloaded', full, { retryAfterSecs: 60 })
}

/** Says which share of an agent's open proposals is used up; with shares, nobody can keep others from proposing. */
function fullShare(open: readonly OpenShare[], one: OpenShare): string | undefined {
  const own = open.filter(({ line }) => line === one.line).length
  if (isUser(one)) {
    if (own >= limits.proposalsOfUserMax)
      return `The user has ${limits.proposalsOfUserMax} open proposals about this agent: wait until one ends`
    if (open.filter(isUser).length >= limits.proposalsOfUsersMax)
      return `Users have ${limits.proposalsOfUsersMax} open proposals about this agent: wait until one ends`
  }
  if (own >= limits.proposalsOfLineMax)
    return `One line of keys has ${limits.proposalsOfLineMax} open proposals about this agent: wait until one ends`
  if (!one.erases && open.filter(({ erases }) => !erases).length >= limits.proposalsNotErasingMax)
    return `The agent has ${limits.proposalsNotErasingMax} open proposals that do not erase: wait until one ends`
  return open.length < limits.proposalsOpenMax
    ? undefined
    : `The agent has ${limits.proposalsOpenMax} open proposals: wait until one ends`
}

function isUser({ line }: Pick<OpenShare, 'line'>): boolean {
  return line.startsWith('user:')
}

/** What the strand says of a proposal (docs/FORMAT.md, Proposals). */
function proposalBody(row: Omit<ProposalRow, 'seq' | 'hash'>): Record<string, unknown> {
  return {
    ...told(row.mutation),
    principal: row.proposer,
    ...(row.line !== undefined && { line: row.line }),
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
      return {
        action,
        public_key: mutation.publicKey,
        ...(mutation.reason !== undefined && { reason: mutation.reason }),
      }
    case 'make_api_key': {
      // The line named here is the proposer's; that of the key is named when it is made.
      const { line: _line, ...facts } = keyFacts(mutation)
      return { action, ...facts }
    }
    default:
      return { action, target: mutation.target, target_seq: mutation.targetSeq }
  }
}
