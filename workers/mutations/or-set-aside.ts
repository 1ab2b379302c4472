import type { ProposalCursor } from '../../src/protocol/proposal-messages.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { findAgent, type ShardState } from '../shard/state.js'
import { RowSetAside } from '../store/set-aside.js'
import type { Agent } from '../store/tables/agent.js'

export function setAsideName({ agentNo, seq }: ProposalCursor): string {
  return `proposals ${agentNo}/${seq}`
}

/**
 * Handles a proposal. If that throws, sets the proposal aside, and the turn is decided again without it.
 * @throws RowSetAside; or what `handle` threw, if no more rows can be set aside
 */
export function orSetAside<Result>(
  state: ShardState,
  { cursor, handle }: { cursor: ProposalCursor; handle: (agent: Agent) => Result },
  group: CommitGroup,
): Result {
  const { agents, setAside } = state.store
  const name = setAsideName(cursor)
  try {
    const agent = findAgent(state, group, agents.nameOf(cursor.agentNo))
    if (agent === undefined) throw new Error('The agent of the proposal is missing')
    // So that it is read again, also if it was changed in memory alone.
    group.touched.set(agent.name, agent)
    return handle(agent)
  } catch (error) {
    setAside.add(name, error)
    throw setAside.has(name) ? new RowSetAside() : error
  }
}
