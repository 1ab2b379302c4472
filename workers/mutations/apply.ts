import { assert, unreachable } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import {
  lineageOf,
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
import { apiKeyAuditEntry, keyAt, putApiKey } from '../shard/audit.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { PendingRecord } from '../store/write-set.js'
import type { ShardState } from '../shard/state.js'
import { seedContext } from '../store/tables/agents.js'
import type { Agent } from '../store/tables/agent.js'
import { findEdge, edges } from '../store/tables/edges.js'
import { mutations, isDeleted } from '../store/tables/mutations.js'
import { erasures } from '../store/tables/erasures.js'
import { zoneChanges } from '../store/tables/zone-changes.js'
import { apiKeys } from '../store/tables/api-keys.js'

export interface MutationRequest<M extends Mutation = Mutation> extends Author {
  agent: Agent
  mutation: M
  proposalSeq?: number
}

/** Whether a mutation changes the agent itself, not a record, an edge or an API key. */
export function isOfAgent(mutation: Mutation): mutation is AgentMutation {
  return !('target' in mutation) && mutation.action !== 'remove_edge' && mutation.action !== 'make_api_key'
}

/** The reason why a mutation cannot be applied now; undefined if it can be. */
export function obstacle(
  state: ShardState,
  group: CommitGroup,
  { agent, mutation }: Pick<MutationRequest, 'agent' | 'mutation'>,
): Refusal | undefined {
  if (mutation.action === 'remove_edge') return edgeObstacle(state, group, { agent, mutation })
  if ('target' in mutation) {
    const record = state.store.findRecord(agent, mutation.target)
    if (record !== undefined && record.seq !== mutation.targetSeq)
      return refuse('record_not_found', 'The seq and the hash are of two records')
    return recordObstacle(recordState(state, group, { agent, mutation }), mutation)
  }
  if (mutation.action === 'make_api_key') return keyObstacle(state, group, mutation)
  if (mutation.action !== 'rotate_key') return undefined
  const isRetired = agent.retiredKeys.some(({ publicKey }) => publicKey === mutation.publicKey)
  if (isRetired || agent.publicKey === mutation.publicKey) {
    return refuse('key_in_use', 'The agent has or had this key already: rotate to a new one')
  }
  return agent.retiredKeys.length < limits.keyRotationsMax
    ? undefined
    : refuse(
        'too_large',
        `The key of this agent was rotated ${limits.keyRotationsMax} times, which is the maximum`,
      )
}

function recordObstacle(now: RecordState, { action }: RecordMutation): Refusal | undefined {
  if (now === 'erased') return refuse('already_erased', 'The record is already erased')
  if (now === 'deleted' && action === 'delete')
    return refuse('already_deleted', 'The record is already deleted')
  if (now === 'active' && action === 'restore') return refuse('not_deleted', 'The record is not deleted')
  return undefined
}

function edgeObstacle(
  state: ShardState,
  group: CommitGroup,
  { agent, mutation: { dst, edgeType } }: { agent: Agent; mutation: EdgeMutation },
): Refusal | undefined {
  const name = { agentNo: agent.no, edgeType, dst }
  const edge = group.changes.find(edges)?.last(name) ?? findEdge(state.store.environment, name)
  if (edge?.live === true) return undefined
  return refuse('edge_not_found', `No edge of type "${edgeType}" from "${agent.name}" to "${dst}"`)
}

/** A proposed API key is created only while the key that proposed it exists. */
function keyObstacle(state: ShardState, group: CommitGroup, { madeBy }: KeyMutation): Refusal | undefined {
  if (madeBy.startsWith('key_') && keyAt(state, madeBy, group) === undefined) {
    return refuse('not_found', 'The API key that proposed this key was deleted')
  }
  return state.store.tables.of(apiKeys).count + (group.changes.find(apiKeys)?.rows.size ?? 0) <
    limits.apiKeysMax
    ? undefined
    : refuse(
        'too_large',
        `The server has ${limits.apiKeysMax} API keys, which is the maximum: delete one first`,
      )
}

export type RecordState = 'active' | 'deleted' | 'erased'

function recordState(
  state: ShardState,
  group: CommitGroup,
  { agent, mutation: { target, targetSeq } }: { agent: Agent; mutation: RecordMutation },
): RecordState {
  const record = state.store.findRecord(agent, target)
  const erases = group.changes.find(erasures)?.has({ agentNo: agent.no, seq: targetSeq }) === true
  if (erases || record?.erased === true) return 'erased'
  const pending = group.changes
    .find(mutations)
    ?.rows.findLast((one) => one.agentNo === agent.no && one.targetSeq === targetSeq)
  const deleted =
    pending?.deleted ?? isDeleted(state.store.environment, agent, { seq: targetSeq, asOfSeq: agent.head.seq })
  return deleted ? 'deleted' : 'active'
}

/**
 * Applies a mutation and appends a record with its author. The caller has checked `obstacle` and has reserved
 * the clock reading of the record.
 */
export function applyMutation(
  state: ShardState,
  request: MutationRequest,
  group: CommitGroup,
): PendingRecord {
  const { agent, mutation } = request
  if ('target' in mutation) return applyToRecord({ ...request, mutation }, group)
  switch (mutation.action) {
    case 'zone': {
      const { zone } = mutation
      const record = append(group, request, { type: 'sys/zone', members: { zone, from: agent.zone } })
      agent.zone = zone
      group.changes.of(zoneChanges).push({ agentNo: agent.no, seq: record.seq, zone })
      group.changeAgent(agent.name, { zone })
      return record
    }
    case 'policies': {
      const { policies } = mutation
      const record = append(group, request, { type: 'sys/policy', members: { policies } })
      agent.policies = policies
      agent.policiesBy = lineageOf(request)
      group.changeAgent(agent.name, { policies, policiesBy: agent.policiesBy })
      return record
    }
    case 'remove_edge': {
      const { dst, edgeType } = mutation
      const members = { src: agent.name, dst, edge_type: edgeType }
      const record = append(group, request, { type: 'edge/remove', members })
      const { seq, hlc } = record
      const change = { agentNo: agent.no, src: agent.name, dst, edgeType, seq, hlc }
      group.changes.of(edges).add({ ...change, live: false, weight: 0 })
      return record
    }
    case 'rotate_key':
      return rotateKey(state, { ...request, mutation }, group)
    case 'make_api_key':
      return makeApiKey(state, { ...request, mutation }, group)
    default:
      return unreachable(mutation)
  }
}

/** Creates the API key; its age counts from now, not from the proposal. */
function makeApiKey(
  state: ShardState,
  request: MutationRequest<KeyMutation>,
  group: CommitGroup,
): PendingRecord {
  const { action: _action, digest, ...about } = request.mutation
  assert(digest !== undefined, 'the digest of a key is stored until the key is created')
  const { type, body } = apiKeyAuditEntry('made', about, authorOf(request))
  const record = group.append(request.agent, {
    type,
    body: Buffer.from(canonicalJson(body)),
    signing: 'record',
  })
  assert(!('code' in record), 'the clock reading of an API key record was reserved')
  putApiKey(group, { ...about, digest, createdAtMs: state.clock() })
  return record
}

const recordTypes = { delete: 'sys/tombstone', restore: 'sys/restore', erase: eraseType } as const

function applyToRecord(request: MutationRequest<RecordMutation>, group: CommitGroup): PendingRecord {
  const { agent, mutation } = request
  const { action, target, targetSeq } = mutation
  const record = append(group, request, {
    type: recordTypes[action],
    members: { target, target_seq: targetSeq },
  })
  group.changes.of(mutations).changed.push(target)
  if (action === 'erase') {
    group.changes.of(erasures).add({ agentNo: agent.no, seq: targetSeq })
    return record
  }
  agent.mutated = true
  const deleted = action === 'delete'
  group.changes.of(mutations).rows.push({ agentNo: agent.no, targetSeq, mutationSeq: record.seq, deleted })
  return record
}

/**
 * Appends a record that names the new key, signed by the old key, with a proof signed by the new key
 * (docs/FORMAT.md, Key rotation).
 */
function rotateKey(
  state: ShardState,
  request: MutationRequest<Extract<AgentMutation, { action: 'rotate_key' }>>,
  group: CommitGroup,
): PendingRecord {
  const { agent, mutation } = request
  const { publicKey, sealedSeed, reason } = mutation
  assert(sealedSeed !== undefined, 'the seed of a new key is stored until the key is in force')
  const seed = unseal(state.masterSeed, seedContext(agent.name), Buffer.from(sealedSeed, 'hex'))
  const keyPair = keyPairFromSeed(seed)
  assert(keyPair.publicKey === publicKey, 'the new key is the one of its seed')
  const proof = signText(keyPair.secretKey, rotationProofText(agent.strand, publicKey)).toString('hex')
  const body = Buffer.from(
    keyRotateBody(publicKey, proof, { ...authorOf(request), ...(reason !== undefined && { reason }) }),
  )
  const record = group.append(agent, { type: keyRotateType, body, signing: 'record' })
  assert(!('code' in record), 'the clock reading of a rotation was reserved')
  agent.retiredKeys = [...agent.retiredKeys, { publicKey: agent.publicKey, lastSeq: record.seq }]
  agent.publicKey = publicKey
  agent.keyPair = keyPair
  agent.keyIndex = agent.retiredKeys.length
  group.changeAgent(agent.name, { publicKey, sealedSeed, retiredKeys: agent.retiredKeys })
  return record
}

function append(
  group: CommitGroup,
  request: MutationRequest,
  { type, members }: { type: string; members: Record<string, unknown> },
): PendingRecord {
  const body = Buffer.from(canonicalJson({ ...members, ...authorOf(request) }))
  const record = group.append(request.agent, { type, body, signing: 'record' })
  assert(!('code' in record), 'the clock reading of a mutation was reserved')
  return record
}

function authorOf({ principal, proposalSeq }: MutationRequest): Record<string, unknown> {
  return { principal, ...(proposalSeq !== undefined && { proposal_seq: proposalSeq }) }
}
