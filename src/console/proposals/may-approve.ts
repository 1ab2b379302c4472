import type { Proposal } from '../../client/index.js'
import { may, type WhoAmI } from '../parts/session.js'
import { approvalsOf } from '../parts/proposal-words.js'

/**
 * Why whoever is signed in cannot approve a proposal (docs/OPERATIONS.md, Zones and proposals); undefined where nothing
 * that the page knows prevents it. The server knows more, such as the keys between two of one line, and decides.
 */
export function approvalBar(proposal: Proposal, who: WhoAmI): string | undefined {
  const { proposer, line, zone, action, votes, created_at_ms: createdAtMs } = proposal
  const { principal, made_by: madeBy, created_at_ms: madeAtMs } = who
  if (principal === proposer) return 'You proposed this yourself, so somebody else has to approve it'
  if (ownLines(principal, madeBy).includes(line))
    return 'Your key and the proposer’s come from the same key, so somebody else has to approve it'
  if (madeAtMs !== null && madeAtMs > createdAtMs)
    return 'Your key is younger than the proposal, so it cannot approve it'
  if (!may(who, 'proposals:decide')) return 'Approving needs proposals:decide'
  if ((action === 'make_api_key' || zone === 'immutable_core') && !may(who, 'admin:*'))
    return 'Only a key with admin:* can approve this'
  const approvals = approvalsOf({ votes })
  if (approvals.some((vote) => vote.principal === principal)) return 'You have approved this already'
  return approvals.some((vote) => ownLines(principal, madeBy).includes(vote.line))
    ? 'A key that comes from the same key as yours has approved it already'
    : undefined
}

/** Names that the line of a key can have, as far as the key itself shows: a key of the root key begins one. */
function ownLines(principal: string, madeBy: string | null): string[] {
  return madeBy === null || madeBy === 'root' || madeBy === 'open' ? [principal] : [principal, madeBy]
}
