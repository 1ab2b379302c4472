import { chainOf, type Mutation, type Proposal, type World } from './world.js'
import type { ChainRecord, View } from './strand.js'

/* The expected answers of the server, computed from the model. */

/** The Unix milliseconds of a clock. */
export function msOf(hlc: string | undefined): number | undefined {
  return hlc === undefined ? undefined : Number.parseInt(hlc.slice(0, 12), 16)
}

/** WriteResponse of the OpenAPI document. */
export function writeResponse(agent: string, record: ChainRecord | undefined): unknown {
  if (record === undefined) return undefined
  const { hash, prev, hlc, seq, signature, sealedBy } = record
  return {
    record_id: hash,
    id: hash,
    content_hash: hash,
    hash: `sha256:${hash}`,
    parent_hash: prev,
    timestamp_hlc: hlc,
    timestamp_ms: msOf(hlc),
    seq,
    signature,
    sealed_by: sealedBy,
    agent,
  }
}

/** RecordView of the OpenAPI document. */
export function recordView(
  record: ChainRecord,
  { deleted, erased }: Pick<View, 'deleted' | 'erased'>,
): unknown {
  const { hash, prev, seq, hlc, type, body, signature, sealedBy, key } = record
  return {
    record_id: hash,
    content_hash: hash,
    parent_hash: prev,
    seq,
    timestamp_hlc: hlc,
    timestamp_ms: msOf(hlc),
    type,
    payload: erased.has(hash) ? null : body,
    signature,
    sealed_by: sealedBy,
    public_key: key,
    deleted: deleted.has(hash),
    erased: erased.has(hash),
  }
}

/** The location of an agent's last record, as members of answers about edges. */
export function lastWritten(world: World, agent: string): Record<string, unknown> {
  const last = chainOf(world, agent).at(-1)
  return { record_id: last?.hash, seq: last?.seq, timestamp_hlc: last?.hlc, timestamp_ms: msOf(last?.hlc) }
}

/** The answer to a mutation that was applied immediately. */
export function mutationAnswer(world: World, agent: string, mutation: Mutation): unknown {
  const last = chainOf(world, agent).at(-1)
  const members = { seq: last?.seq, record_id: last?.hash }
  switch (mutation.action) {
    case 'zone':
      return { agent_id: agent, zone: mutation.zone, ...members }
    case 'policies':
      return { agent_id: agent, policies: mutation.policies, warnings: [], ...members }
    case 'rotate_key':
      return { agent_id: agent, public_key: last?.body.public_key, ...members }
    case 'remove_edge': {
      const { edge_type, dst } = mutation
      return { src: agent, dst, edge_type, removed: true, ...lastWritten(world, agent) }
    }
    default: {
      const state = { delete: 'deleted', restore: 'active', erase: 'erased' }[mutation.action]
      return { record_id: mutation.target, state, seq: last?.seq }
    }
  }
}

/** The view of a proposal in the HTTP interface. */
export function proposalView(proposal: Proposal): unknown {
  const { agent, seq, mutation } = proposal
  return {
    proposal_id: `p_${seq}_${agent}`,
    agent,
    action: mutation.action,
    target: 'target' in mutation ? mutation.target : null,
    target_seq: 'target' in mutation ? mutation.target_seq : null,
    change: changeOf(mutation),
    zone: proposal.zone,
    state: proposal.state,
    proposer: proposal.proposer,
    line: proposal.line,
    votes: proposal.votes,
    created_at_ms: proposal.createdAtMs,
    effective_at_ms: proposal.effectiveAtMs,
    expires_at_ms: proposal.expiresAtMs,
    ended_at_ms: proposal.endedAtMs,
    reason: proposal.reason,
  }
}

function changeOf(mutation: Mutation): unknown {
  switch (mutation.action) {
    case 'zone':
      return { zone: mutation.zone }
    case 'policies':
      return { policies: mutation.policies }
    case 'rotate_key':
      return { public_key: mutation.public_key }
    case 'remove_edge':
      return { edge: { edge_type: mutation.edge_type, dst: mutation.dst } }
    default:
      return null
  }
}
