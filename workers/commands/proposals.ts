import { assert } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { bodyOfMutation, type MutationBody } from '../../src/protocol/proposal-body.js'
import {
  approvalsOf,
  authorOf,
  authorsOf,
  canEnd,
  lineageOf,
  type Author,
  type Mutation,
  type ProposalCursor,
  type ProposalRow,
  type Standing,
  type Vote,
} from '../../src/protocol/proposal-messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import { proposalId } from '../../src/strand/proposal.js'
import type { ProposalView } from '../../src/wire/proposals.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { orSetAside, setAsideName } from '../mutations/or-set-aside.js'
import { putProposal, proposalAt } from '../mutations/pending.js'
import {
  approvalsNeeded,
  endProposal,
  proposerEnded,
  recordsToResolve,
  resolve,
  standingOf,
  type OpenProposal,
} from '../mutations/resolve.js'
import { findAgent, importOpen, noSuchAgent, type Decision, type ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import { findProposal, proposalPlaces } from '../store/tables/proposals.js'
import { scanBudget, takeRow } from '../store/tables/scan-budget.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Proposals. */
export const proposalCommands = {
  writes: {
    proposalDecide: { decide: proposalDecide },
    authorsEnd: { decide: authorsEnd },
  },
  reads: {
    proposalList: { answer: proposalList, isForCallerAlone: true },
    proposalAuthors: { answer: proposalAuthors },
  },
} satisfies FeatureCommands

/** The maximum number of proposals that a page of ended authors changes, so that other commands do not wait long. */
const CHANGES_MAX = 64

/**
 * Records a vote, and applies or ends the proposal if the vote decides it, in one transaction. 404
 * proposal_not_found, 409 proposal_closed, 409 already_voted, 403 forbidden, 503 clock_skew.
 */
function proposalDecide(
  state: ShardState,
  command: CommandOf<'proposalDecide'>,
  group: CommitGroup,
): Decision {
  const agent = findAgent(state, group, command.agent)
  const row =
    agent === undefined ? undefined : proposalAt(state, group, { agentNo: agent.no, seq: command.seq })
  // A user must not learn about proposals of others.
  const hidden = command.principal.startsWith('user:') && row?.proposer !== command.principal
  if (agent === undefined || row === undefined || hidden) {
    return refuse('proposal_not_found', 'Proposal not found')
  }
  const refusal =
    (agent.importing ? importOpen(agent.name) : undefined) ??
    closedRefusal(state, row) ??
    voterRefusal(row, command) ??
    standingRefusal({ agent, row }, command) ??
    group.reserve(recordsToResolve(state, { agent, row }, group))
  if (refusal !== undefined) return refusal
  const voted = { agent, row: castVote(state, { agent, row }, { command, group }) }
  const after = applyLastVote(state, voted, { standings: command.standings ?? [], group })
  return () => ({ kind: 'reply', status: 200, body: JSON.stringify(viewOf(after)) })
}

function closedRefusal(state: ShardState, row: ProposalRow): Refusal | undefined {
  const expired = state.clock() >= row.expiresAtMs
  if (row.state === 'proposed' && !expired) return undefined
  return refuse('proposal_closed', 'The proposal is no longer open', {
    extra: { state: row.state === 'proposed' ? 'expired' : row.state },
  })
}

function voterRefusal(row: ProposalRow, command: CommandOf<'proposalDecide'>): Refusal | undefined {
  const { vote, principal, admin } = command
  if (vote === 'cancel') {
    const canCancel = principal === row.proposer || admin
    return canCancel
      ? undefined
      : refuse('forbidden', 'Only the proposer or a key with admin:* can cancel a proposal')
  }
  const hasVoted = row.votes.some((one) => one.principal === principal && one.vote === vote)
  const refusal = vote === 'approve' ? approverRefusal(row, command) : undefined
  if (refusal !== undefined && !hasVoted) return refusal
  return hasVoted ? refuse('already_voted', 'You have already voted') : undefined
}

/**
 * A proposal cannot be approved by its proposer, by a key of the proposer's lineage, or by a key that is
 * younger than the proposal (docs/adr/0033-lines-of-keys.md).
 */
function approverRefusal(row: ProposalRow, command: CommandOf<'proposalDecide'>): Refusal | undefined {
  const { principal, admin, keyMadeAtMs = 0 } = command
  if (principal === row.proposer) return refuse('forbidden', 'The proposer cannot approve the proposal')
  const lineage = lineageOf(command)
  if (lineage === lineageOf({ ...row, principal: row.proposer })) {
    return refuse('forbidden', 'A key of the same lineage as the proposer cannot approve the proposal')
  }
  if (keyMadeAtMs > row.createdAtMs)
    return refuse('forbidden', 'A key that is younger than the proposal cannot approve it')
  if (row.mutation.action === 'make_api_key' || row.zone === 'immutable_core') {
    if (!admin) return refuse('forbidden', 'Approving this proposal requires a key with admin:*')
  }
  const hasApproved = approvalsOf(row.votes).some((one) => lineageOf(one) === lineage)
  return hasApproved
    ? refuse('forbidden', 'A key of the same lineage has already approved the proposal')
    : undefined
}

/**
 * An approval requires the standing of the proposer. A user's proposal cannot be approved by a key lineage
 * that could have made the user propose it (docs/adr/0033-lines-of-keys.md), or by the root key if there is
 * another admin.
 */
function standingRefusal(
  { agent, row }: OpenProposal,
  command: CommandOf<'proposalDecide'>,
): Refusal | undefined {
  const { vote, principal, standings = [], otherAdmins = false } = command
  if (vote !== 'approve' || !canEnd(row.proposer)) return undefined
  const standing = standings.find((one) => one.principal === row.proposer)
  if (standing === undefined)
    return refuse('unavailable', 'The server could not look up the proposer, try again')
  if (!row.proposer.startsWith('user:') || (principal === 'root' && !otherAdmins)) return undefined
  const lineage = lineageOf(command)
  if (agent.policiesBy !== lineage && standing.lineages?.includes(lineage) !== true) return undefined
  return refuse(
    'forbidden',
    'A key of this lineage cannot approve the proposal: the lineage created the account of the proposer, last wrote its ' +
      'app_metadata, or wrote the policies of the agent',
  )
}

function castVote(
  state: ShardState,
  { agent, row }: OpenProposal,
  { command, group }: { command: CommandOf<'proposalDecide'>; group: CommitGroup },
): ProposalRow {
  return appendVote(state, { agent, row }, { vote: command.vote, author: authorOf(command), group })
}

/** Appends the record of a vote; the caller has reserved the clock reading. */
function appendVote(
  state: ShardState,
  { agent, row }: OpenProposal,
  { vote, author, group }: { vote: Vote['vote']; author: Author; group: CommitGroup },
): ProposalRow {
  const body = canonicalJson({ ...author, proposal: row.hash, proposal_seq: row.seq, vote })
  const record = group.append(agent, { type: 'sys/vote', body: Buffer.from(body), signing: 'record' })
  assert(!('code' in record), 'the clock reading of a vote was reserved')
  const added: Vote = { ...author, vote, atMs: state.clock(), seq: record.seq }
  const after = { ...row, votes: [...row.votes, added] }
  putProposal(group, agent.no, after)
  return after
}

/** Applies or ends a proposal if its last vote decides it. */
function applyLastVote(
  state: ShardState,
  { agent, row }: OpenProposal,
  { standings, group }: { standings: readonly Standing[]; group: CommitGroup },
): ProposalRow {
  const vote = row.votes.at(-1)?.vote
  if (vote === 'cancel') return endProposal(state, { agent, row }, { state: 'cancelled', group })
  if (vote === 'reject') return endProposal(state, { agent, row }, { state: 'rejected', group })
  const ended = new Set(standings.filter(({ valid }) => !valid).map(({ principal }) => principal))
  const approvals = approvalsOf(row.votes).filter(({ principal }) => !ended.has(principal)).length
  if (approvals < approvalsNeeded(row)) return row
  return resolve(state, { agent, row }, { proposer: standingOf(row, standings), group })
}

/** The authors of a proposal, none if it does not exist; or a page of the authors of open proposals. */
function proposalAuthors(
  { store: { environment, agents } }: ShardState,
  { of, after }: CommandOf<'proposalAuthors'>,
): Outcome {
  if (of !== undefined) {
    const agent = agents.find(of.agent)
    const row =
      agent === undefined ? undefined : findProposal(environment, { agentNo: agent.no, seq: of.seq })
    return { kind: 'authors', principals: row === undefined ? [] : authorsOf(row) }
  }
  const principals = new Set<string>()
  const budget = scanBudget(AUTHORS_ROWS)
  let last = after
  for (const cursor of proposalPlaces(environment, { open: true, ...(after !== undefined && { after }) })) {
    if (!takeRow(budget) && last !== undefined)
      return { kind: 'authors', principals: [...principals], next: last }
    last = cursor
    const row = findProposal(environment, { ...cursor, budget })
    for (const principal of row === undefined ? [] : authorsOf(row)) principals.add(principal)
  }
  return { kind: 'authors', principals: [...principals] }
}

/** The maximum number of open proposals that a command reads for their authors. */
const AUTHORS_ROWS = 1_024

/**
 * Cancels the open proposals of deleted or expired principals and withdraws their approvals, each by a
 * record. The work is split into pages. 503 clock_skew.
 */
function authorsEnd(
  state: ShardState,
  { principals, after }: CommandOf<'authorsEnd'>,
  group: CommitGroup,
): Decision {
  const { environment, setAside } = state.store
  const ended = new Set(principals)
  const budget = scanBudget(AUTHORS_ROWS)
  let changed = 0
  let last = after
  for (const cursor of proposalPlaces(environment, { open: true, ...(after !== undefined && { after }) })) {
    if ((!takeRow(budget) || changed >= CHANGES_MAX) && last !== undefined) {
      const next = last
      return () => ({ kind: 'authors', principals: [], next })
    }
    last = cursor
    if (setAside.has(setAsideName(cursor))) continue
    const row = proposalAt(state, group, { ...cursor, budget })
    if (row?.state !== 'proposed' || !authorsOf(row).some((one) => ended.has(one))) continue
    const handle = (agent: Agent): Refusal | undefined => {
      if (agent.importing) return undefined
      const skew = group.reserve(Math.max(row.votes.length, recordsToResolve(state, { agent, row }, group)))
      if (skew === undefined) endAuthors(state, { agent, row }, { ended, group })
      return skew
    }
    changed++
    const skew = orSetAside(state, { cursor, handle }, group)
    if (skew !== undefined) return skew
  }
  return () => ({ kind: 'authors', principals: [] })
}

function endAuthors(
  state: ShardState,
  { agent, row }: OpenProposal,
  { ended, group }: { ended: ReadonlySet<string>; group: CommitGroup },
): void {
  if (ended.has(row.proposer)) {
    endProposal(state, { agent, row }, { state: 'cancelled', reason: proposerEnded, group })
    return
  }
  let after = row
  for (const approval of approvalsOf(row.votes)) {
    if (!ended.has(approval.principal)) continue
    const author = authorOf(approval)
    after = appendVote(state, { agent, row: after }, { vote: 'withdrawn', author, group })
  }
}

/** A page of proposals by agent and seq; 404 agent_not_found. */
function proposalList(state: ShardState, command: CommandOf<'proposalList'>): Outcome {
  const agent = command.agent === undefined ? undefined : state.store.agents.find(command.agent)
  if (command.agent !== undefined && agent === undefined) return noSuchAgent(command.agent)
  const rows: string[] = []
  let last: ProposalCursor | undefined
  const budget = scanBudget(limits.pageScanRecordsMax)
  const cursors = proposalPlaces(state.store.environment, {
    open: command.state === 'proposed',
    ...(command.after !== undefined && { after: command.after }),
    ...(agent !== undefined && { agentNo: agent.no }),
  })
  for (const cursor of cursors) {
    if (last !== undefined && (rows.length >= command.limit || !takeRow(budget))) {
      return { kind: 'proposals', rows, next: last }
    }
    last = cursor
    const row = findProposal(state.store.environment, { ...cursor, budget })
    if (row?.ofStrand === true) budget.rows -= limits.proposalOfStrandRows
    if (row?.mutation.action === 'make_api_key' && !command.keys) continue
    if (row === undefined || (command.state !== undefined && row.state !== command.state)) continue
    rows.push(JSON.stringify(viewOf(row)))
  }
  return { kind: 'proposals', rows }
}

/** The view of a proposal in the HTTP interface. */
function viewOf(row: ProposalRow): ProposalView {
  const body = bodyOfMutation(row.mutation)
  return {
    proposal_id: proposalId(row.agent, row.seq),
    agent: row.agent,
    action: body.action,
    target: 'target' in body ? body.target : null,
    target_seq: 'target' in body ? body.target_seq : null,
    change: changeIn(body, row.mutation),
    zone: row.zone,
    state: row.state,
    proposer: row.proposer,
    line: row.line ?? row.proposer,
    votes: row.votes.map((one) => ({
      principal: one.principal,
      line: lineageOf(one),
      vote: one.vote,
      at_ms: one.atMs,
    })),
    created_at_ms: row.createdAtMs,
    effective_at_ms: row.effectiveAtMs ?? null,
    expires_at_ms: row.expiresAtMs,
    ended_at_ms: row.endedAtMs ?? null,
    reason: row.reason ?? null,
  }
}

/** Every member of the body but the action and the record; and the name of a key, which is not recorded. */
function changeIn(body: MutationBody, mutation: Mutation): ProposalView['change'] {
  if ('target' in body) return null
  if (body.action === 'remove_edge') {
    const { action: _action, ...edge } = body
    return { edge }
  }
  if (body.action === 'make_api_key') {
    const { action: _action, key_expires_at_ms: expiresAtMs, ...key } = body
    const name = 'name' in mutation ? mutation.name : ''
    return { api_key: { ...key, name, expires_at_ms: expiresAtMs } }
  }
  const { action: _action, ...change } = body
  return change
}
