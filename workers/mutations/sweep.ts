import type { CommandOf } from '../../src/protocol/messages.js'
import { canEnd, type ProposalCursor, type Standing } from '../../src/protocol/proposal-messages.js'
import { orSetAside, setAsideName } from './or-set-aside.js'
import { proposalAt } from './pending.js'
import { endProposal, recordsToResolve, resolve, standingOf } from './resolve.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { Decision, ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import { dueProposals, findProposal } from '../store/tables/proposals.js'
import type { FeatureCommands } from '../shard/command-table.js'
import { pastProposals } from '../store/tables/past-proposals.js'
import { type ScanBudget, scanBudget, takeRow } from '../store/tables/scan-budget.js'

/** Proposals whose time has come. */
export const sweepCommands = {
  writes: {
    proposalsSweep: { decide: proposalsSweep },
  },
} satisfies FeatureCommands

/** The maximum number of proposals that a sweep ends, so that other commands do not wait long. */
const SWEEP_MAX = 64

/** What the proposals before this one in the sweep led to. */
interface Sweep {
  standings: readonly Standing[]
  /** Proposers whose standing is needed. */
  authors: Set<string>
  /** Agents whose later proposals wait, so that they apply in the order in which they came due. */
  waiting: Set<number>
  budget: ScanBudget
}

/**
 * Applies the proposals that are due, ends the expired ones, and replaces the rows of those that ended long
 * ago (docs/adr/0014-proposals.md). Due times follow the wall clock, also if it is set back or forward. A
 * proposal whose handling throws is set aside, and the others are handled.
 */
function proposalsSweep(
  state: ShardState,
  { standings = [] }: CommandOf<'proposalsSweep'>,
  group: CommitGroup,
): Decision {
  const { environment, tables, setAside } = state.store
  const budget = scanBudget(SWEEP_MAX)
  const sweep: Sweep = { standings, authors: new Set(), waiting: new Set(), budget }
  const due = dueProposals(environment, {
    nowMs: state.clock(),
    limit: SWEEP_MAX + 1,
    skips: (cursor) => setAside.has(setAsideName(cursor)),
  })
  let left = due.length
  for (const cursor of due) {
    if (!takeRow(budget)) break
    left--
    const handle = (agent: Agent): boolean => handleDue(state, { cursor, agent, sweep }, group)
    const isBehind = orSetAside(state, { cursor, handle }, group)
    // If the clock is behind the latest records, the proposals wait for the next sweep.
    if (isBehind) return () => ({ kind: 'swept', left: false })
  }
  const past = tables.of(pastProposals).aging.scan(environment, state.clock())
  if (past.length > 0) group.changes.of(pastProposals).push(...past)
  const unknownAuthors = sweep.authors.size === 0 ? {} : { authors: [...sweep.authors] }
  return () => ({ kind: 'swept', left: left > 0, ...unknownAuthors })
}

/** Applies or ends a due proposal, unless it waits. @returns whether the clock is behind the latest records */
function handleDue(
  state: ShardState,
  { cursor, agent, sweep }: { cursor: ProposalCursor; agent: Agent; sweep: Sweep },
  group: CommitGroup,
): boolean {
  if (agent.importing) return false
  if (findProposal(state.store.environment, { ...cursor, budget: sweep.budget })?.state !== 'proposed') {
    throw new Error('The due time has no valid row of an open proposal')
  }
  const row = proposalAt(state, group, cursor)
  // An earlier command of the group has ended it.
  if (row?.state !== 'proposed') return false
  const proposer = standingOf(row, sweep.standings)
  const lacksStanding = row.effectiveAtMs !== undefined && proposer === undefined && canEnd(row.proposer)
  if (lacksStanding) sweep.authors.add(row.proposer)
  if (lacksStanding || sweep.waiting.has(cursor.agentNo)) {
    sweep.waiting.add(cursor.agentNo)
    return false
  }
  if (group.reserve(recordsToResolve(state, { agent, row }, group)) !== undefined) return true
  if (row.effectiveAtMs === undefined) endProposal(state, { agent, row }, { state: 'expired', group })
  else resolve(state, { agent, row }, { proposer, group })
  return false
}
