import type { Policy } from '../../src/auth/row-policy.js'
import type { ProposalRow, ProposalCursor } from '../../src/protocol/proposal-messages.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import {
  findProposal,
  openProposalAbout,
  openProposalCount,
  proposalPlaces,
  proposalTarget,
  type OpenShare,
  proposals,
} from '../store/tables/proposals.js'
import type { ScannedProposal } from '../store/tables/past-proposals.js'

/* Proposals as of a commit group: those on disk with the changes of earlier commands in the group. */

/** Writes the new state of a proposal. */
export function putProposal(group: CommitGroup, agentNo: number, row: ProposalRow): void {
  group.changes.of(proposals).set(cursorName({ agentNo, seq: row.seq }), { agentNo, row })
}

/** A proposal, by agent number and seq. */
export function proposalAt(
  state: ShardState,
  group: CommitGroup,
  cursor: ScannedProposal,
): ProposalRow | undefined {
  return (
    group.changes.find(proposals)?.get(cursorName(cursor))?.row ??
    findProposal(state.store.environment, cursor)
  )
}

export function openAbout(
  state: ShardState,
  group: CommitGroup,
  { agent, target }: { agent: Agent; target: string },
): ProposalRow | undefined {
  for (const { row } of pendingOf(group, agent)) {
    if (row.state === 'proposed' && proposalTarget(row) === target) return row
  }
  const seq = openProposalAbout(state.store.environment, agent.no, target)
  const row = seq === undefined ? undefined : proposalAt(state, group, { agentNo: agent.no, seq })
  return row?.state === 'proposed' ? row : undefined
}

/** Proposed policies of an agent. */
export interface PendingPolicies {
  seq: number
  policies: readonly Policy[]
  /** When they apply automatically; absent if they wait for approval. */
  effectiveAtMs?: number
}

/** The policies of the open proposal, on disk, to replace those of an agent. */
export function pendingPolicies(state: ShardState, { no: agentNo }: Agent): PendingPolicies | undefined {
  const seq = openProposalAbout(state.store.environment, agentNo, 'policies')
  const row = seq === undefined ? undefined : findProposal(state.store.environment, { agentNo, seq })
  if (row?.mutation.action !== 'policies') return undefined
  const { mutation, effectiveAtMs } = row
  return {
    seq: row.seq,
    policies: mutation.policies,
    ...(effectiveAtMs !== undefined && { effectiveAtMs }),
  }
}

export function openProposals(state: ShardState, group: CommitGroup, agent: Agent): ProposalRow[] {
  const seqs = new Set(pendingOf(group, agent).map(({ row }) => row.seq))
  for (const { seq } of proposalPlaces(state.store.environment, { agentNo: agent.no, open: true }))
    seqs.add(seq)
  return [...seqs].flatMap((seq) => {
    const row = proposalAt(state, group, { agentNo: agent.no, seq })
    return row?.state === 'proposed' ? [row] : []
  })
}

/**
 * An upper bound of an agent's open proposals, without reading them: proposals that this group has ended
 * count as open.
 */
export function openCount(state: ShardState, group: CommitGroup, agent: Agent): number {
  return openProposalCount(state.store.environment, agent.no) + pendingOf(group, agent).length
}

/**
 * The shares of an agent's open proposals, including proposals that this group has ended. Stored proposals
 * are read once per group.
 */
export function openShares(state: ShardState, group: CommitGroup, agent: Agent): OpenShare[] {
  const read = openSharesRead.get(group) ?? new Map<number, Map<number, OpenShare>>()
  openSharesRead.set(group, read)
  let stored = read.get(agent.no)
  if (stored === undefined) {
    const cursors = proposalPlaces(state.store.environment, { agentNo: agent.no, open: true })
    const rows = [...cursors].flatMap((cursor) => findProposal(state.store.environment, cursor) ?? [])
    stored = new Map(rows.map((row) => [row.seq, shareOf(row)]))
    read.set(agent.no, stored)
  }
  const added = pendingOf(group, agent).filter(({ row }) => stored.get(row.seq) === undefined)
  return [...stored.values(), ...added.map(({ row }) => shareOf(row))]
}

function shareOf({ proposer, line, mutation }: ProposalRow): OpenShare {
  return { line: line ?? proposer, erases: mutation.action === 'erase' }
}

/**
 * The shares of the open proposals that were stored before a group, by agent number and seq, as far as they were
 * read. Reading them changes nothing, so they are not among the group's changes.
 */
const openSharesRead = new WeakMap<CommitGroup, Map<number, Map<number, OpenShare>>>()

function pendingOf(group: CommitGroup, agent: Agent): { row: ProposalRow }[] {
  const pending = group.changes.find(proposals)?.values() ?? []
  return [...pending].filter(({ agentNo }) => agentNo === agent.no)
}

function cursorName({ agentNo, seq }: ProposalCursor): string {
  return `${agentNo}/${seq}`
}
