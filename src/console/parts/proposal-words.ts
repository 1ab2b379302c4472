import { escapeUnseen } from '../../auth/shown-text.js'
import type { Proposal } from '../../client/index.js'

/** What a proposal would do, in a few words. */
export function whatText({ action, change }: Proposal): string {
  switch (action) {
    case 'delete':
      return 'Delete a record'
    case 'restore':
      return 'Restore a record'
    case 'erase':
      return 'Erase a record for good'
    case 'remove_edge':
      return `Remove the edge to ${change?.edge?.dst ?? 'an agent'}`
    case 'zone':
      return `Change the zone to ${change?.zone ?? 'another'}`
    case 'policies':
      return 'Replace the rules for users'
    case 'rotate_key':
      return 'Change the key'
    case 'make_api_key':
      return `Make the API key “${escapeUnseen(change?.api_key?.name ?? '')}”`
  }
}

/** What happens when it is applied, in a sentence. */
export function effectText({ action }: Proposal): string {
  switch (action) {
    case 'delete':
      return 'The record is left out of lists and streams. Its body stays in the strand and in exports, and it can be restored.'
    case 'restore':
      return 'The record is shown again.'
    case 'erase':
      return 'The body and its salt are destroyed. This cannot be undone. Hash, signature, type, time and place stay.'
    case 'remove_edge':
      return 'The edge is left out of the graph. The records that tell of it stay.'
    case 'zone':
      return 'Changes follow the rule of the other zone from then on. All other open proposals of the agent end as rejected.'
    case 'policies':
      return 'Users may do what these rules allow from then on, on open streams too.'
    case 'rotate_key':
      return 'New records are signed with the new key. The old secret key is not kept, so this cannot be undone.'
    case 'make_api_key':
      return 'The key works from then on.'
  }
}

/** Approvals that a proposal needs in all; none where it applies itself. */
export function approvalsNeeded({ zone }: Proposal): number {
  if (zone === 'governed') return 0
  return zone === 'immutable_core' ? 2 : 1
}

/** The approvals that it has: those that were not withdrawn. */
export function approvalsOf({ votes }: Pick<Proposal, 'votes'>): Proposal['votes'] {
  const withdrawn = votes.filter(({ vote }) => vote === 'withdrawn').map(({ principal }) => principal)
  return votes.filter(({ vote, principal }) => vote === 'approve' && !withdrawn.includes(principal))
}

/** Why one was rejected without a vote: what stood in its way (docs/errors.md). */
export function reasonText(reason: string): string {
  return reasons[reason] ?? reason
}

const reasons: Record<string, string> = {
  proposer_ended: 'the key or user that proposed it was deleted, or the key has expired',
  forbidden: 'its user may not do that any more',
  superseded: 'another proposal about the same record took its place',
  zone_changed: 'the zone of the agent changed meanwhile',
  already_deleted: 'the record was deleted meanwhile',
  already_erased: 'the record was erased meanwhile',
  not_deleted: 'the record was restored meanwhile',
  edge_not_found: 'the edge was removed meanwhile',
  not_found: 'the key that proposed it was deleted meanwhile',
  key_in_use: 'the agent had this key before',
  seed_unknown: 'the seed of the new key is not on this server',
  too_large: 'a limit of the server was reached',
}
