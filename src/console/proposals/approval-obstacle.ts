import type { ProposalView } from '../../client/index.js'
import { hasScope, type WhoAmI } from '../parts/session.js'
import { approvalsOf } from '../parts/proposal-labels.js'

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
