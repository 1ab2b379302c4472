import type { CommandOf } from '../../src/protocol/messages.js'
import { authorOf } from '../../src/protocol/proposal-messages.js'
import { keyPairFromSeed, seedBytes } from '../../src/strand/keys.js'
import { seal } from '../../src/strand/seal.js'
import { keyRotated, zoneChanged } from '../../src/wire/render.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { PendingRecord } from '../store/write-set.js'
import { requestMutation } from '../mutations/request.js'
import type { Decision, ShardState } from '../shard/state.js'
import { seedContext } from '../store/tables/agents.js'
import { targetAgent } from './records.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Changes of agents. */
export const agentChangeCommands = {
  writes: {
    agentZoneSet: { decide: agentZoneSet },
    agentKeyRotate: { decide: agentKeyRotate },
  },
} satisfies FeatureCommands

/** Changes the zone of an agent, immediately or by a proposal; 404 agent_not_found, 412 head_mismatch. */
function agentZoneSet(state: ShardState, command: CommandOf<'agentZoneSet'>, group: CommitGroup): Decision {
  const agent = targetAgent(state, { ...command, emerge: false }, group)
  if ('code' in agent) return agent
  const { zone } = command
  const done = ({ seq, hash }: PendingRecord) => zoneChanged(agent.name, zone, { seq, hash })
  const mutation = { action: 'zone' as const, zone }
  return requestMutation(state, { agent, mutation, ...authorOf(command), done }, group)
}

/**
 * Rotates the key of an agent, immediately or by a proposal. The caller has claimed the key of a given seed.
 * 404 agent_not_found, 409 key_in_use, 412 head_mismatch.
 */
function agentKeyRotate(
  state: ShardState,
  command: CommandOf<'agentKeyRotate'>,
  group: CommitGroup,
): Decision {
  const agent = targetAgent(state, { ...command, emerge: false }, group)
  if ('code' in agent) return agent
  if (command.check === true) return () => ({ kind: 'done' })
  const seed = command.seed ?? state.random(seedBytes)
  const { publicKey } = keyPairFromSeed(seed)
  const sealed = seal(state.masterSeed, { ...seedContext(agent.name), secret: seed }, state.random)
  const reason = command.reason === undefined ? {} : { reason: command.reason }
  const mutation = {
    action: 'rotate_key' as const,
    publicKey,
    sealedSeed: sealed.toString('hex'),
    ...reason,
  }
  const done = ({ seq, hash }: PendingRecord) => keyRotated(agent.name, publicKey, { seq, hash })
  return requestMutation(state, { agent, mutation, ...authorOf(command), done }, group)
}
