import { assert } from '../../src/base/assert.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { agentToRead } from '../mutations/row-access.js'
import { type ShardState } from '../shard/state.js'
import { recordBySeq } from '../store/tables/records.js'
import { zoneAt } from '../store/tables/zone-changes.js'
import { lastSeqAt } from './query.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Time travel. */
export const asOfCommands = {
  reads: {
    strandThen: { answer: strandThen, isReadElsewhere: true },
  },
} satisfies FeatureCommands

/**
 * The head of a strand and the zone of its agent as of a moment; no head before the genesis record. 404
 * agent_not_found, for users 403 without a read policy.
 */
function strandThen(state: ShardState, command: CommandOf<'strandThen'>): Outcome {
  const agent = agentToRead(state, command)
  if ('code' in agent) return agent
  const { environment } = state.store
  const seq = 'seq' in command.at ? command.at.seq : lastSeqAt(state, agent, command.at.moment)
  const strand = { kind: 'strandThen', shard: state.shard, agentNo: agent.no } as const
  if (seq < 0 || seq > agent.head.seq) return strand
  const last = recordBySeq(environment, agent.no, seq)
  assert(last !== undefined, 'a strand has no gaps')
  return { ...strand, head: { seq, hash: last.hash, zone: zoneAt(environment, agent.no, seq) } }
}
