import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { checkpointOrigin, signCheckpoint } from '../../src/strand/checkpoint.js'
import { agentToRead, covers, grantOf, isRefused } from '../mutations/row-access.js'
import { importOpen, noSuchAgent, type ShardState } from '../shard/state.js'
import { noSuchRecord } from './records.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Proofs. */
export const proofCommands = {
  reads: {
    strandLocate: { answer: strandLocate, isReadElsewhere: true },
    checkpointSign: { answer: checkpointSign },
  },
} satisfies FeatureCommands

/**
 * The head and location of a strand for the readers of the pool, and the read policies of a user; 404 for the
 * agent or the requested record, for users 403 without a read policy.
 */
function strandLocate(state: ShardState, command: CommandOf<'strandLocate'>): Outcome {
  const agent = agentToRead(state, command)
  if ('code' in agent) return agent
  const grant = grantOf(agent, 'read', command.access)
  if (isRefused(grant)) return grant
  const located: Outcome = {
    kind: 'located',
    shard: state.shard,
    agentNo: agent.no,
    strand: agent.strand,
    publicKey: agent.publicKey,
    retiredKeys: agent.retiredKeys,
    headSeq: agent.head.seq,
    headHash: agent.head.hash,
    ...(grant !== undefined && { readable: { key: grant.key, text: grant.text } }),
  }
  if (command.hash === undefined) return located
  const record = state.store.findRecord(agent, command.hash)
  if (record === undefined || !covers(grant, record)) return noSuchRecord(command.hash)
  return { ...located, seq: record.seq }
}

/**
 * The signed note of a tree head that a reader of the pool computed from this shard's store. The key of a
 * head before a rotation no longer exists: the current key signs if that is allowed, otherwise the outcome is
 * `done` without a note.
 */
function checkpointSign(state: ShardState, command: CommandOf<'checkpointSign'>): Outcome {
  const agent = state.store.agents.find(command.agent)
  if (agent === undefined) return noSuchAgent(command.agent)
  const last = agent.retiredKeys.at(-1)
  if (command.by === 'then' && last !== undefined && command.size <= last.lastSeq) return { kind: 'done' }
  // An agent that is being imported cannot sign, because its key may be missing.
  if (agent.importing) return importOpen(agent.name)
  const checkpoint = { origin: checkpointOrigin(agent.strand), size: command.size, rootHex: command.root }
  return { kind: 'reply', status: 200, body: signCheckpoint(checkpoint, agent.keyPair) }
}
