import type { ProposalCursor } from '../../src/protocol/proposal-messages.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { findAgent, type ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'

/** The name under which a proposal is set aside. */
export function setAsideName({ agentNo, seq }: ProposalCursor): string {
  return `proposals ${agentNo}/${seq}`
}

/**
 * Handles a proposal. If that throws, takes back what it did and sets the proposal aside, so that the others
 * are handled: the store is not changed before the commit.
 * @returns what `handle` returned; undefined if it threw
 */
export function orSetAside<Result>(
  state: ShardState,
  { place, handle }: { place: ProposalCursor; handle: (agent: Agent) => Result },
  group: CommitGroup,
): Result | undefined {
  const { agents, setAside } = state.store
  let takeBack: (() => void) | undefined
  try {
    const agent = findAgent(state, group, agents.nameOf(place.agentNo))
    if (agent === undefined) throw new Error('The agent of the proposal is missing')
    takeBack = group.savepoint(agent)
    return handle(agent)
  } catch (error) {
    takeBack?.()
    setAside.add(setAsideName(place), error)
    return undefined
  }
}
