import type { ProposalView } from '../../client/index.js'
import { Countdown } from '../parts/countdown.js'
import { Time } from '../parts/texts.js'
import { approvalsNeeded, approvalsOf } from '../parts/proposal-labels.js'

/** The time at which an open proposal takes effect, or the state of a decided one. */
export function When({ proposal }: { proposal: ProposalView }) {
  const { state, ended_at_ms: endedAtMs, effective_at_ms: effectiveAtMs } = proposal
  if (state !== 'proposed') {
    return (
      <span>
        <span class={`badge ${state}`}>{state}</span>
        {endedAtMs !== null && <Time ms={endedAtMs} />}
      </span>
    )
  }
  if (effectiveAtMs !== null) return <Countdown untilMs={effectiveAtMs} />
  const needed = approvalsNeeded(proposal)
  if (needed === 1) return <span>When another key approves</span>
  return (
    <span>
      After {needed} approvals, {approvalsOf(proposal).length} so far
    </span>
  )
}
