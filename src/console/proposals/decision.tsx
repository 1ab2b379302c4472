import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { ProposalView } from '../../client/index.js'
import { Confirm } from '../parts/confirm.js'
import { keyDigits } from '../parts/format.js'
import { type SignedIn, hasScope } from '../parts/session.js'
import {
  approvalObstacle,
  approvalsNeeded,
  approvalsOf,
  effectText,
  whatText,
} from '../parts/proposal-labels.js'
import { Button } from '../parts/texts.js'

type Vote = 'approve' | 'reject' | 'cancel'

const voteWords: Record<Vote, { title: string; button: string }> = {
  approve: { title: 'Approve', button: 'Approve proposal' },
  reject: { title: 'Reject', button: 'Reject proposal' },
  cancel: { title: 'Withdraw', button: 'Withdraw proposal' },
}

interface DecisionProps {
  session: SignedIn
  proposal: ProposalView
  decided: () => void
}

/** Buttons to vote on a proposal, each with a confirmation. */
export function Decision({ session, proposal, decided }: DecisionProps) {
  const { who } = session
  const [confirming, setConfirming] = useState<Vote | undefined>(undefined)
  const [message, setMessage] = useState('')
  const status = useRef<HTMLParagraphElement>(null)
  useLayoutEffect(() => {
    // The button that had the focus may no longer exist.
    if (message !== '') status.current?.focus()
  }, [message])
  const isOpen = proposal.state === 'proposed'
  const obstacle = approvalObstacle(proposal, who)
  const mayCancel = proposal.proposer === who.principal || hasScope(who, 'admin:*')
  return (
    <section aria-labelledby="decision-title">
      <h3 id="decision-title">{isOpen ? 'Your decision' : 'Decided'}</h3>
      <p role="status" class="said" ref={status} tabIndex={-1}>
        {message}
      </p>
      {!isOpen && message === '' && (
        <p class="muted">This proposal is {proposal.state}. It can no longer be decided.</p>
      )}
      {isOpen && (
        <>
          {obstacle !== undefined && <p class="notice">{obstacle}.</p>}
          <div class="buttons">
            <Button
              text="Approve"
              class="primary"
              disabled={obstacle !== undefined}
              onClick={() => setConfirming('approve')}
            />
            <Button
              text="Reject"
              disabled={!hasScope(who, 'proposals:decide')}
              onClick={() => setConfirming('reject')}
            />
            {mayCancel && <Button text="Withdraw" class="quiet" onClick={() => setConfirming('cancel')} />}
          </div>
        </>
      )}
      {confirming !== undefined && (
        <ConfirmVote
          session={session}
          proposal={proposal}
          vote={confirming}
          close={() => setConfirming(undefined)}
          done={(after) => {
            setMessage(outcomeText(confirming, after))
            decided()
          }}
        />
      )}
    </section>
  )
}

function outcomeText(vote: Vote, { state }: ProposalView): string {
  if (vote === 'cancel') return 'You have withdrawn it'
  if (vote === 'reject') return 'You have rejected it'
  if (state === 'applied') return 'You have approved it, and it has taken effect'
  return state === 'proposed'
    ? 'You have approved it. It needs one more approval'
    : `You have approved it, and it was ${state}`
}

function ConfirmVote(props: {
  session: SignedIn
  proposal: ProposalView
  vote: Vote
  close: () => void
  done: (after: ProposalView) => void
}) {
  const { session, proposal, vote, close, done } = props
  const { title, button } = voteWords[vote]
  const { proposal_id: id, agent, action, target } = proposal
  const after = useRef<ProposalView>(undefined)
  const isErasing = vote === 'approve' && action === 'erase'
  const what = 'the last 8 digits of the record’s hash'
  return (
    <Confirm
      change={{
        title,
        heading: `${title}: ${whatText(proposal)}`,
        button,
        isDanger: vote !== 'approve' || isErasing,
        confirm: isErasing ? { wanted: keyDigits(target ?? ''), what } : undefined,
        async apply() {
          after.current = await session.service.proposals[vote](id)
          return after.current
        },
        close() {
          close()
          // Together with the dialog: its end gives the focus back, and what follows takes it.
          if (after.current !== undefined) done(after.current)
        },
      }}
    >
      <p>
        Agent <strong>{agent}</strong>. {consequenceText(vote, proposal)}
      </p>
    </Confirm>
  )
}

function consequenceText(vote: Vote, proposal: ProposalView): string {
  if (vote === 'reject')
    return 'The proposal ends without effect, and has to be created again. Your vote is stored as a signed record.'
  if (vote === 'cancel')
    return 'The proposal ends without effect. A signed record stores that you withdrew it.'
  const left = approvalsNeeded(proposal) - approvalsOf(proposal).length
  const when = left > 1 ? 'It takes effect after one more approval.' : 'It takes effect immediately.'
  return `${when} ${effectText(proposal)}`
}
