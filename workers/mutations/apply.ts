import { assert, unreachable } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import {
  lineOf,
  type AgentMutation,
  type Author,
  type EdgeMutation,
  type KeyMutation,
  type Mutation,
  type RecordMutation,
} from '../../src/protocol/proposal-messages.js'
import { keyRotateBody } from '../../src/strand/genesis.js'
import { canonicalJson } from '../../src/strand/json.js'
import { keyPairFromSeed, signText } from '../../src/strand/keys.js'
import { eraseType, keyRotateType } from '../../src/strand/record-type.js'
import { rotationProofText } from '../../src/strand/header.js'
import { unseal } from '../../src/strand/seal.js'
import { apiKeyTold, keyAt, putApiKey } from '../shard/audit.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { PendingRecord } from '../store/write-set.js'
import type { ShardState } from '../shard/state.js'
import { seedPlace } from '../store/tables/agents.js'
import type { Agent } from '../store/tables/agent.js'
import { findEdge } from '../store/tables/edges.js'

/** A mutation of one agent, and who asked for it. */
export interface MutationRequest<M extends Mutation = Mutation> extends Author {
  agent: Agent
  mutation: M
  /** Seq of the proposal that led to it. */
  proposalSeq?: number
}

/** Whether a mutation changes the agent itself, and not a record or an edge of it. */
export function isOfAgent(mutation: Mutation): mutation is AgentMutation {
  return !('target' in mutation) && mutation.action !== 'remove_edge' && mutation.action !== 'make_api_key'
}

/** Why a mutation cannot be applied now; undefined when it can. */
export function obstacle(
  state: ShardState,
  group: CommitGroup,
  { agent, mutation }: Pick<MutationRequest, 'agent' | 'mutation'>,
): Refusal | undefined {
  if (mutation.action === 'remove_edge') return edgeObstacle(state, group, { agent, mutation })
  if ('target' in mutation) return recordObstacle(recordState(state, group, { agent, mutation }), mutation)
  if (mutation.action === 'make_api_key') return keyObstacle(state, group, mutation)
  if (mutation.action !== 'rotate_key') return undefined
  // Seeds are on no strand: that of an imported proposal is only on the server where it was made.
  if (mutation.sealedSeed === undefined) {
    return refuse('seed_unknown', 'Expected the seed of the key, which an imported proposal does not bring')
  }
  const had = agent.retiredKeys.some(({ publicKey }) => publicKey === mutation.publicKey)
  if (had || agent.publicKey === mutation.publicKey) {
    return refuse('key_in_use', 'Expected a key that the agent never had')
  }
  return agent.retiredKeys.length < limits.keyRotationsMax
    ? undefined
    : refuse('too_large', `Expected at most ${limits.keyRotationsMax} rotations of one agent's key`)
}

function recordObstacle(now: RecordState, { action }: RecordMutation): Refusal | undefined {
  if (now === 'erased') return refuse('already_erased', 'Expected a record that is not erased')
  if (now === 'deleted' && action === 'delete')
    return refuse('already_deleted', 'Expected a record that is not deleted')
  if (now === 'active' && action === 'restore')
    return refuse('not_deleted', 'Expected a record that is deleted')
  return undefined
}

function edgeObstacle(
  state: ShardState,
  group: CommitGroup,
  { agent, mutation: { dst, edgeType } }: { agent: Agent; mutation: EdgeMutation },
): Refusal | undefined {
  const name = { agentNo: agent.no, edgeType, dst }
  const edge = group.edgeChange(name) ?? findEdge(state.store.environment, name)
  if (edge?.live === true) return undefined
  return refuse('edge_not_found', `Expected an edge of type "${edgeType}" from "${agent.name}" to "${dst}"`)
}

/** A proposed API key is made only while the key that proposed it still exists. */
function keyObstacle(state: ShardState, group: CommitGroup, { madeBy }: KeyMutation): Refusal | undefined {
  if (madeBy.startsWith('key_') && keyAt(state, madeBy, group) === undefined) {
    return refuse('not_found', 'Expected the key that proposed another one to be there still')
  }
  return state.store.apiKeys.count + group.apiKeys.size < limits.apiKeysMax
    ? undefined
    : refuse('too_large', `Expected at most ${limits.apiKeysMax} API keys`)
}

/** The state of a record. */
export type RecordState = 'active' | 'deleted' | 'erased'

/** The state of a record as this group leaves it. */
function recordState(
  state: ShardState,
  group: CommitGroup,
  { agent, mutation: { target, targetSeq } }: { agent: Agent; mutation: RecordMutation },
): RecordState {
  const record = state.store.findRecord(agent, target)
  const erases = group.erases({ agentNo: agent.no, seq: targetSeq })
  if (erases || record?.erased === true) return 'erased'
  const pending = group.mutations.findLast((one) => one.agentNo === agent.no && one.targetSeq === targetSeq)
  const deleted = pending?.deleted ?? state.store.isDeleted(agent, targetSeq, agent.head.seq)
  return deleted ? 'deleted' : 'active'
}

/**
 * Applies a mutation by a record of its own, which says who asked for it. The caller has checked that nothing prevents
 * it and has reserved the clock reading of its record.
 */
export function applyMutation(state: ShardState, asked: MutationRequest, group: CommitGroup): PendingRecord {
  const { agent, mutation } = asked
  if ('target' in mutation) return applyToRecord({ ...asked, mutation }, group)
  switch (mutation.action) {
    case 'zone': {
      const { zone } = mutation
      const record = append(group, asked, { type: 'sys/zone', members: { zone, from: agent.zone } })
      agent.zone = zone
      group.zoneChanges.push({ agentNo: agent.no, seq: record.seq, zone })
      group.changeAgent(agent.name, { zone })
      return record
    }
    case 'policies': {
      const { policies } = mutation
      const record = append(group, asked, { type: 'sys/policy', members: { policies } })
      agent.policies = policies
      agent.policiesBy = lineOf(asked)
      group.changeAgent(agent.name, { policies, policiesBy: agent.policiesBy })
      return record
    }
    case 'remove_edge': {
      const { dst, edgeType } = mutation
      const members = { src: agent.name, dst, edge_type: edgeType }
      const record = append(group, asked, { type: 'edge/remove', members })
      const { seq, hlc } = record
      const place = { agentNo: agent.no, src: agent.name, dst, edgeType, seq, hlc }
      group.changeEdge({ ...place, live: false, weight: 0 })
      return record
    }
    case 'rotate_key':
      return rotateKey(state, { ...asked, mutation }, group)
    case 'make_api_key':
      return makeApiKey(state, { ...asked, mutation }, group)
    default:
      return unreachable(mutation)
  }
}

/** The key works from now on, and its age counts from now. */
function makeApiKey(
  state: ShardState,
  asked: MutationRequest<KeyMutation>,
  group: CommitGroup,
): PendingRecord {
  const { action: _action, digest, ...about } = asked.mutation
  assert(digest !== undefined, 'the digest of a key is kept until the key is made')
  const { type, body } = apiKeyTold('made', about, authorOf(asked))
  const record = group.append(asked.agent, {
    type,
    body: Buffer.from(canonicalJson(body)),
    signing: 'record',
  })
  assert(!('code' in record), 'the place of a record of a key was reserved')
  putApiKey(group, { ...about, digest, createdAtMs: state.clock() })
  return record
}

const recordTypes = { delete: 'sys/tombstone', restore: 'sys/restore', erase: eraseType } as const

function applyToRecord(asked: MutationRequest<RecordMutation>, group: CommitGroup): PendingRecord {
  const { agent, mutation } = asked
  const { action, target, targetSeq } = mutation
  const record = append(group, asked, {
    type: recordTypes[action],
    members: { target, target_seq: targetSeq },
  })
  group.changedRecords.push(target)
  if (action === 'erase') {
    group.erase({ agentNo: agent.no, seq: targetSeq })
    return record
  }
  agent.mutated = true
  const deleted = action === 'delete'
  group.mutations.push({ agentNo: agent.no, targetSeq, mutationSeq: record.seq, deleted })
  return record
}

/**
 * The old key signs the record that names the new one; the proof in it is signed by the new one (docs/FORMAT.md, Key
 * rotation).
 */
function rotateKey(
  state: ShardState,
  asked: MutationRequest<Extract<AgentMutation, { action: 'rotate_key' }>>,
  group: CommitGroup,
): PendingRecord {
  const { agent, mutation } = asked
  const { publicKey, sealedSeed, reason } = mutation
  assert(sealedSeed !== undefined, 'the seed of a new key is kept until it is in force')
  const seed = unseal(state.masterSeed, seedPlace(agent.name), Buffer.from(sealedSeed, 'hex'))
  const keyPair = keyPairFromSeed(seed)
  assert(keyPair.publicKey === publicKey, 'the new key is the one of its seed')
  const proof = signText(keyPair.secretKey, rotationProofText(agent.strand, publicKey)).toString('hex')
  const body = Buffer.from(
    keyRotateBody(publicKey, proof, { ...authorOf(asked), ...(reason !== undefined && { reason }) }),
  )
  const record = group.append(agent, { type: keyRotateType, body, signing: 'record' })
  assert(!('code' in record), 'the place of a rotation was reserved')
  agent.retiredKeys = [...agent.retiredKeys, { publicKey: agent.publicKey, lastSeq: record.seq }]
  agent.publicKey = publicKey
  agent.keyPair = keyPair
  agent.keyIndex = agent.retiredKeys.length
  group.changeAgent(agent.name, { publicKey, sealedSeed, retiredKeys: agent.retiredKeys })
  return record
}

function append(
  group: CommitGroup,
  asked: MutationRequest,
  { type, members }: { type: string; members: Record<string, unknown> },
): PendingRecord {
  const body = Buffer.from(canonicalJson({ ...members, ...authorOf(asked) }))
  const record = group.append(asked.agent, { type, body, signing: 'record' })
  assert(!('code' in record), 'the place of a mutation was reserved')
  return record
}

/** Who asked, and by which proposal, as the record of a mutation states it. */
function authorOf({ principal, proposalSeq }: MutationRequest): Record<string, unknown> {
  return { principal, ...(proposalSeq !== undefined && { proposal_seq: proposalSeq }) }
}
