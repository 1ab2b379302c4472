import { escapeUnseen } from '../../auth/shown-text.js'
import type { ProposalView } from '../../client/index.js'
import { countText } from './format.js'
import { hasScope, type WhoAmI } from './session.js'

export function whatText({ action, change, target_seq: seq }: ProposalView): string {
  const record = seq === null ? 'a record' : `record ${countText(seq)}`
  switch (action) {
    case 'delete':
      return `Delete ${record}`
    case 'restore':
      return `Restore ${record}`
    case 'erase':
      return `Permanently erase ${record}`
    case 'remove_edge':
      return `Remove the edge to ${change?.edge?.dst ?? 'an agent'}`
    case 'zone':
      return `Change the zone to ${change?.zone ?? 'another'}`
    case 'policies':
      return 'Replace the rules for users'
    case 'rotate_key':
      return 'Change the key'
    case 'make_api_key':
      return `Create the API key “${escapeUnseen(change?.api_key?.name ?? '')}”`
  }
}

/** The effect of a proposal when it is applied. */
export function effectText({ action }: ProposalView): string {
  return effects[action]
}

const effects: Record<ProposalView['action'], string> = {
  delete:
    'The record no longer appears in lists and streams. Its body stays in the strand and in exports, and the record can be restored.',
  restore: 'The record appears in lists and streams again.',
  erase:
    'The body and its salt are destroyed. This cannot be undone. Hash, signature, type, time and position stay.',
  remove_edge: 'The edge is removed from the graph. The records of adding and removing it stay.',
  zone: 'Later changes follow the rule of the new zone. All other open proposals of the agent end as rejected.',
  policies: 'These rules replace the current ones, for open streams too.',
  rotate_key:
    'New records are signed with the new key. The server does not keep the old secret key, so this cannot be undone.',
  make_api_key: 'The key can be used.',
}

/** The number of approvals that a proposal needs; 0 if the server applies it automatically. */
export function approvalsNeeded({ zone }: ProposalView): number {
  if (zone === 'governed') return 0
  return zone === 'immutable_core' ? 2 : 1
}

export function approvalsOf({ votes }: Pick<ProposalView, 'votes'>): ProposalView['votes'] {
  const withdrawn = votes.filter(({ vote }) => vote === 'withdrawn').map(({ principal }) => principal)
  return votes.filter(({ vote, principal }) => vote === 'approve' && !withdrawn.includes(principal))
}

/** The reason why the server rejected a proposal without a vote, as text (docs/errors.md). */
export function reasonText(reason: string): string {
  return reasons[reason] ?? reason
}

const reasons: Record<string, string> = {
  proposer_ended: 'the key or user that proposed it was deleted, or the key has expired',
  forbidden: 'the user that proposed it no longer has the permission',
  imported: 'it was imported from another server',
  superseded: 'another proposal about the same record replaced it',
  zone_changed: 'the zone of the agent has changed',
  already_deleted: 'the record is already deleted',
  already_erased: 'the record is already erased',
  not_deleted: 'the record is not deleted',
  edge_not_found: 'the edge does not exist',
  not_found: 'the key that proposed it was deleted',
  key_in_use: 'the agent had this key before',
  seed_unknown: 'the seed of the new key is not on this server',
  too_large: 'a limit of the server was reached',
}

/**
 * The reason why the signed-in key cannot approve a proposal (docs/ZONES.md); undefined if the page knows of
 * none. The server has the final decision, because only it knows whole key lineages.
 */
export function approvalObstacle(proposal: ProposalView, who: WhoAmI): string | undefined {
  const { proposer, line, zone, action, votes, created_at_ms: createdAtMs } = proposal
  const { principal, made_by: madeBy, created_at_ms: keyCreatedAtMs } = who
  if (principal === proposer) return 'You proposed this, so another key has to approve it'
  if (ownLineages(principal, madeBy).includes(line))
    return 'Your key and the proposer’s key have the same lineage, so another key has to approve it'
  if (keyCreatedAtMs !== null && keyCreatedAtMs > createdAtMs)
    return 'Your key was created after the proposal, so it cannot approve it'
  if (!hasScope(who, 'proposals:decide')) return 'Approving needs proposals:decide'
  if ((action === 'make_api_key' || zone === 'immutable_core') && !hasScope(who, 'admin:*'))
    return 'Only a key with admin:* can approve this'
  const approvals = approvalsOf({ votes })
  if (approvals.some((vote) => vote.principal === principal)) return 'You have already approved this'
  return approvals.some((vote) => ownLineages(principal, madeBy).includes(vote.line))
    ? 'A key with the same lineage as yours has already approved it'
    : undefined
}

/**
 * The possible lineages of a key, as far as the key itself shows. A key created by the root key starts a
 * lineage.
 */
function ownLineages(principal: string, madeBy: string | null): string[] {
  return madeBy === null || madeBy === 'root' || madeBy === 'open' ? [principal] : [principal, madeBy]
}
