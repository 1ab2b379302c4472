import type { PoliciesShown } from '../../../client/index.js'
import { Countdown } from '../../parts/countdown.js'
import { Time } from '../../parts/texts.js'
import { proposalLink } from '../../route.js'

/** Says that proposed rules are not in force yet, and when they will be. */
export function PendingRules({ pending }: { pending: NonNullable<PoliciesShown['pending']> }) {
  const { proposal_id: id, effective_at_ms: atMs } = pending
  return (
    <p class="notice warn">
      <strong>New rules are proposed and not in force yet.</strong>{' '}
      {atMs === null ? (
        'They take effect when another key approves them.'
      ) : (
        <>
          They take effect at <Time ms={atMs} />, unless they are rejected before:{' '}
          <Countdown untilMs={atMs} />. Users whom they allow more get the error <code>policy_pending</code>{' '}
          until then.
        </>
      )}{' '}
      <a href={proposalLink(id)}>Open the proposal</a>
    </p>
  )
}
