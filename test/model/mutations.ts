import { anything } from './matching.js'
import { viewOf, type View } from './strand.js'
import {
  chainOf,
  dayMs,
  nextSeq,
  type Actor,
  type Mutation,
  type Proposal,
  type Vote,
  type World,
} from './world.js'

/*
 * Mutations and their proposals by the rules of the zones (docs/adr/0014-proposals.md): the refusals, the
 * records, and the ends of proposals.
 */

/** The next expected record of a chain. */
export interface Expected {
  type: string
  body: unknown
}

/** Whether a mutation changes the agent itself, not a record or an edge. */
export function isOfAgent({ action }: Mutation): boolean {
  return action === 'zone' || action === 'policies' || action === 'rotate_key'
}

/** The codes with which a mutation may be refused. */
export function mutationRefusals(world: World, agent: string, mutation: Mutation): string[] {
  const view = viewOf(chainOf(world, agent))
  const refusals = obstacles(world, agent, mutation)
  if (view.zone === 'immutable_core' && !isOfAgent(mutation)) refusals.push('zone_immutable')
  const open = openAbout(world, agent, mutation)
  if (view.zone !== 'free' && open !== undefined && !supersedes(mutation, open))
    refusals.push('proposal_open')
  return refusals
}

function openAbout(world: World, agent: string, mutation: Mutation): Proposal | undefined {
  return openOf(world, agent).find((one) => targetOf(one.mutation) === targetOf(mutation))
}

/** Whether a proposal supersedes an open one about the same record; all proposers of the model are keys. */
function supersedes({ action }: Mutation, open: Proposal): boolean {
  return action === 'erase' && open.mutation.action !== 'erase'
}

/** The end of the open proposal that a new proposal supersedes. */
export function superseded(world: World, agent: string, mutation: Mutation): ProposalEnds {
  const open = openAbout(world, agent, mutation)
  if (open === undefined) return { records: [], ends: [] }
  const about = { state: 'rejected', reason: 'superseded' } as const
  return { records: [endRecord(world, open, about)], ends: [{ proposal: open, ...about }] }
}

/** The codes for which a mutation cannot be applied to the current chain. */
function obstacles(world: World, agent: string, mutation: Mutation): string[] {
  const chain = chainOf(world, agent)
  const view = viewOf(chain)
  switch (mutation.action) {
    case 'delete':
    case 'restore':
    case 'erase':
      return recordObstacles(view, mutation.action, mutation.target)
    case 'remove_edge':
      return view.edges.has(`${mutation.edge_type} ${mutation.dst}`) ? [] : ['edge_not_found']
    case 'rotate_key':
      return chain.some(({ key }) => key === mutation.public_key) || view.key === mutation.public_key
        ? ['key_in_use']
        : []
    default:
      return []
  }
}

function recordObstacles(view: View, action: 'delete' | 'restore' | 'erase', target: string): string[] {
  if (view.erased.has(target)) return ['already_erased']
  if (action === 'delete' && view.deleted.has(target)) return ['already_deleted']
  if (action === 'restore' && !view.deleted.has(target)) return ['not_deleted']
  return []
}

/** The target of a mutation; only one proposal about a target can be open. */
function targetOf(mutation: Mutation): string {
  if ('target' in mutation) return mutation.target
  return mutation.action === 'remove_edge' ? `${mutation.edge_type} ${mutation.dst}` : mutation.action
}

/** The open proposals of an agent, oldest first. */
export function openOf(world: World, agent: string): Proposal[] {
  return world.proposals.filter((one) => one.agent === agent && one.state === 'proposed')
}

const effectTypes = { delete: 'sys/tombstone', restore: 'sys/restore', erase: 'sys/erase' } as const

/** The record of an applied mutation. */
export function effectOf(
  world: World,
  { agent, mutation }: { agent: string; mutation: Mutation },
  author: { principal: string; proposal_seq?: number },
): Expected {
  switch (mutation.action) {
    case 'zone': {
      const from = viewOf(chainOf(world, agent)).zone
      return { type: 'sys/zone', body: { zone: mutation.zone, from, ...author } }
    }
    case 'policies':
      return { type: 'sys/policy', body: { policies: mutation.policies, ...author } }
    case 'remove_edge': {
      const { edge_type, dst } = mutation
      return { type: 'edge/remove', body: { src: agent, dst, edge_type, ...author } }
    }
    case 'rotate_key': {
      const { public_key = anything } = mutation
      return { type: 'sys/key_rotate', body: { public_key, proof: anything, ...author } }
    }
    default: {
      const { action, target, target_seq } = mutation
      return { type: effectTypes[action], body: { target, target_seq, ...author } }
    }
  }
}

/** A new proposal and its record. */
export function proposalOf(
  world: World,
  { agent, mutation }: { agent: string; mutation: Mutation },
  { id: proposer, line }: Pick<Actor, 'id' | 'line'>,
): { proposal: Proposal; record: Expected } {
  const { zone } = viewOf(chainOf(world, agent))
  const { nowMs } = world
  const proposal: Proposal = {
    agent,
    seq: nextSeq(world, agent),
    mutation,
    zone,
    state: 'proposed',
    proposer,
    line,
    votes: [],
    createdAtMs: nowMs,
    effectiveAtMs: zone === 'governed' ? nowMs + world.governedSecs * 1_000 : null,
    expiresAtMs: nowMs + 7 * dayMs,
    endedAtMs: null,
    reason: null,
  }
  const key = mutation.action === 'rotate_key' ? { public_key: mutation.public_key ?? anything } : {}
  const body = {
    ...mutation,
    ...key,
    principal: proposer,
    ...lineMember({ id: proposer, line }),
    in_zone: zone,
    effective_at_ms: proposal.effectiveAtMs,
    expires_at_ms: proposal.expiresAtMs,
  }
  return { proposal, record: { type: 'sys/proposal', body } }
}

/** The time at which an open proposal is applied automatically or expires. */
export function dueAtMs(proposal: Proposal): number {
  return proposal.effectiveAtMs ?? proposal.expiresAtMs
}

/** A vote and its voter. */
export interface Voter {
  vote: Vote
  id: string
  line: string
  /** The creation time of the key. */
  madeAtMs: number
  /** Whether the key has the scope `admin:*`. */
  admin: boolean
}

/** The codes with which a vote may be refused. */
export function voteRefusals(
  world: World,
  proposal: Proposal,
  { vote, id, line, madeAtMs, admin }: Voter,
): string[] {
  const refusals: string[] = []
  const own = proposal.proposer === id
  if (proposal.state !== 'proposed' || world.nowMs >= proposal.expiresAtMs) refusals.push('proposal_closed')
  if (vote === 'cancel' && !own && !admin) refusals.push('forbidden')
  // Keys of the same lineage count as one.
  const sameLine = proposal.votes.some((one) => one.vote === 'approve' && one.line === line)
  if (vote === 'approve' && (proposal.line === line || sameLine)) refusals.push('forbidden')
  if (vote === 'approve' && madeAtMs > proposal.createdAtMs) refusals.push('forbidden')
  if (vote === 'approve' && proposal.zone === 'immutable_core' && !admin) refusals.push('forbidden')
  if (proposal.votes.some((one) => one.principal === id && one.vote === vote)) refusals.push('already_voted')
  return refusals
}

/** The record of a vote. */
export function voteRecord(world: World, proposal: Proposal, { vote, id, line }: Voter): Expected {
  const body = { ...named(world, proposal), vote, principal: id, ...lineMember({ id, line }) }
  return { type: 'sys/vote', body }
}

/** The member `line`, which records have only if the lineage differs from the principal. */
function lineMember({ id, line }: Pick<Actor, 'id' | 'line'>): { line?: string } {
  return line === id ? {} : { line }
}

/** The outcome of an open proposal after one more vote; undefined if it stays open. */
export function outcomeOf(proposal: Proposal, vote: Vote): 'applies' | 'rejected' | 'cancelled' | undefined {
  if (vote === 'cancel') return 'cancelled'
  if (vote === 'reject') return 'rejected'
  const approvals = 1 + proposal.votes.filter((one) => one.vote === 'approve').length
  return approvals < (proposal.zone === 'immutable_core' ? 2 : 1) ? undefined : 'applies'
}

/** The ends of proposals: their records and new states. */
export interface ProposalEnds {
  records: Expected[]
  ends: { proposal: Proposal; state: Proposal['state']; reason: string | null }[]
}

/** The end of a proposal that is not applied. */
export function ending(
  world: World,
  proposal: Proposal,
  state: 'rejected' | 'cancelled' | 'expired',
): ProposalEnds {
  return { records: [endRecord(world, proposal, { state })], ends: [{ proposal, state, reason: null }] }
}

/**
 * The end of an approved or due proposal: applied, or rejected if it can no longer be applied.
 * @param seq that of the next record
 */
export function resolution(world: World, proposal: Proposal, seq: number): ProposalEnds {
  const { agent, mutation } = proposal
  const [reason] = obstacles(world, agent, mutation)
  if (reason !== undefined) {
    const state = 'rejected'
    return {
      records: [endRecord(world, proposal, { state, reason })],
      ends: [{ proposal, state, reason }],
    }
  }
  const effect = effectOf(world, proposal, { principal: proposal.proposer, proposal_seq: proposal.seq })
  const end = endRecord(world, proposal, { state: 'applied', effect_seq: seq })
  const done: ProposalEnds = { records: [effect, end], ends: [{ proposal, state: 'applied', reason: null }] }
  if (mutation.action !== 'zone') return done
  // The other proposals were made under the rules of another zone.
  for (const other of openOf(world, agent)) {
    if (other === proposal) continue
    const about = { state: 'rejected', reason: 'zone_changed' } as const
    done.records.push(endRecord(world, other, about))
    done.ends.push({ proposal: other, ...about })
  }
  return done
}

function endRecord(world: World, proposal: Proposal, members: Record<string, unknown>): Expected {
  return { type: 'sys/applied', body: { ...named(world, proposal), ...members } }
}

function named(world: World, { agent, seq }: Proposal): Record<string, unknown> {
  return { proposal: chainOf(world, agent)[seq]?.hash, proposal_seq: seq }
}
