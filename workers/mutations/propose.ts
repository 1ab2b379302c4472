import { assert } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import { bodyOfMutation } from '../../src/protocol/proposal-body.js'
import { lineageOf, type ProposalRow, type ProposedAs } from '../../src/protocol/proposal-messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import { proposalId } from '../../src/strand/proposal.js'
import type { Proposed } from '../../src/wire/proposals.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { Decision, ShardState } from '../shard/state.js'
import { proposalTarget, type OpenShare } from '../store/tables/proposals.js'
import { putProposal, openAbout, openCount, openShares } from './pending.js'
import { isOfAgent, type MutationRequest } from './apply.js'
import { endProposal } from './resolve.js'

/** Makes a proposal and answers 202, or refuses it as `makeProposal` does. */
export function propose(
  state: ShardState,
  {
    describe = (proposed) => proposed,
    ...request
  }: MutationRequest & { describe?: ((proposed: Proposed) => Proposed) | undefined },
  group: CommitGroup,
): Decision {
  const row = makeProposal(state, request, group)
  if ('code' in row) return row
  const { proposalId: id, effectiveAtMs = null } = proposedAs(row)
  const answer = describe({ proposal_id: id, state: 'proposed', effective_at_ms: effectiveAtMs })
  return () => ({ kind: 'reply', status: 202, body: JSON.stringify(answer) })
}

/** The answer to the author of a proposal. */
export function proposedAs({ agent, seq, effectiveAtMs }: ProposalRow): ProposedAs {
  return { proposalId: proposalId(agent, seq), ...(effectiveAtMs !== undefined && { effectiveAtMs }) }
}

/** The maximum number of records of a proposal: its own, and the end of a proposal that it supersedes. */
export const recordsToPropose = 2

/**
 * Makes a proposal and appends its record; an open proposal about the same target that it supersedes is
 * rejected first. The caller has reserved `recordsToPropose` clock readings. 409 proposal_open if another
 * proposal about the same target is open, 503 overloaded if the agent has too many.
 */
export function makeProposal(
  state: ShardState,
  request: MutationRequest,
  group: CommitGroup,
): ProposalRow | Refusal {
  const { agent, mutation, principal, line } = request
  const open = openAbout(state, group, { agent, target: proposalTarget({ mutation }) })
  const refusal = openProposalRefusal(state, request, { open, group })
  if (refusal !== undefined) return refusal
  if (open !== undefined)
    endProposal(state, { agent, row: open }, { state: 'rejected', reason: 'superseded', group })
  const createdAtMs = state.clock()
  const row: Omit<ProposalRow, 'seq' | 'hash'> = {
    agent: agent.name,
    mutation,
    // The audit strand is immutable, but an API key needs one approval by another admin, as in zone
    // `protected`.
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
  assert(!('code' in record), 'the clock reading of a proposal was reserved')
  const proposal = { ...row, seq: record.seq, hash: record.hash }
  putProposal(group, agent.no, proposal)
  return proposal
}

const DAY_MS = 86_400_000

/**
 * Whether a proposal replaces an open proposal about the same target. A user must not block an erasure by
 * proposals to delete or restore the record, and must not block an API key. A user replaces only proposals of
 * users, because the user could cancel the new proposal afterwards.
 */
function supersedes({ mutation, ...author }: MutationRequest, open: ProposalRow): boolean {
  if (!('target' in mutation)) return false
  const [byUser, ofUser] = [isUser({ line: lineageOf(author) }), isUser({ line: open.line ?? open.proposer })]
  if (byUser && !ofUser) return false
  if (open.mutation.action === 'erase') return mutation.action === 'erase' && !byUser && ofUser
  return mutation.action === 'erase' || (!byUser && ofUser)
}

function openProposalRefusal(
  state: ShardState,
  request: MutationRequest,
  { open: same, group }: { open: ProposalRow | undefined; group: CommitGroup },
): Refusal | undefined {
  const { agent, mutation, ...author } = request
  if (same !== undefined && !supersedes(request, same)) {
    const { effectiveAtMs: atMs } = same
    const until = atMs === undefined ? '' : ` until it takes effect at ${new Date(atMs).toISOString()}`
    return refuse('proposal_open', `Another proposal about the same target is open${until}`, {
      extra: { proposal_id: proposalId(agent.name, same.seq), effective_at_ms: atMs ?? null },
    })
  }
  // Changes of the agent itself are limited to one of each kind, so proposals about its records never block
  // them.
  if (isOfAgent(mutation) || openCount(state, group, agent) < limits.proposalsOfUserMax) return undefined
  const open = openShares(state, group, agent)
  const full = fullShare(open, { line: lineageOf(author), erases: mutation.action === 'erase' })
  return full === undefined ? undefined : refuse('overloaded', full, { retryAfterSecs: 60 })
}

/**
 * Explains which share of an agent's open proposals is used up. Shares prevent one author from blocking the
 * others.
 */
function fullShare(open: readonly OpenShare[], one: OpenShare): string | undefined {
  const own = open.filter(({ line }) => line === one.line).length
  if (isUser(one)) {
    if (own >= limits.proposalsOfUserMax)
      return `The user has ${limits.proposalsOfUserMax} open proposals about this agent: wait until one ends`
    if (open.filter(isUser).length >= limits.proposalsOfUsersMax)
      return `Users have ${limits.proposalsOfUsersMax} open proposals about this agent: wait until one ends`
  }
  if (own >= limits.proposalsOfLineageMax)
    return `One key lineage has ${limits.proposalsOfLineageMax} open proposals about this agent: wait until one ends`
  if (!one.erases && open.filter(({ erases }) => !erases).length >= limits.proposalsNotErasingMax)
    return `The agent has ${limits.proposalsNotErasingMax} open proposals that do not erase: wait until one ends`
  return open.length < limits.proposalsOpenMax
    ? undefined
    : `The agent has ${limits.proposalsOpenMax} open proposals: wait until one ends`
}

function isUser({ line }: Pick<OpenShare, 'line'>): boolean {
  return line.startsWith('user:')
}

/** The body of a proposal's record (docs/FORMAT.md, Proposals). */
function proposalBody(row: Omit<ProposalRow, 'seq' | 'hash'>): Record<string, unknown> {
  return {
    ...bodyOfMutation(row.mutation),
    principal: row.proposer,
    ...(row.line !== undefined && { line: row.line }),
    in_zone: row.zone,
    effective_at_ms: row.effectiveAtMs ?? null,
    expires_at_ms: row.expiresAtMs,
  }
}
