import type { ProposedMutation } from '../../client/index.js'
import { proposalLink } from '../route.js'
import { Time } from './texts.js'

/** Says that a change has become a proposal, and leads to it. */
export function Waits({ proposed }: { proposed: ProposedMutation }) {
  const { proposal_id: id, effective_at_ms: effectiveAtMs } = proposed
  return (
    <p role="status">
      It waits as a proposal.{' '}
      {effectiveAtMs === null ? (
        'It takes effect when somebody else approves it.'
      ) : (
        <>
          It takes effect by itself at <Time ms={effectiveAtMs} />, unless somebody rejects it.
        </>
      )}{' '}
      <a href={proposalLink(id)}>Look at the proposal</a>
    </p>
  )
}
