import { useEffect, useRef, useState } from 'preact/hooks'
import type { Proposal } from '../../client/index.js'
import { Confirm } from '../parts/confirm.js'
import { keyDigits } from '../parts/format.js'
import { type SignedIn, may } from '../parts/session.js'
import { approvalBar } from './may-approve.js'
import { approvalsNeeded, approvalsOf, effectText, whatText } from '../parts/proposal-words.js'

type Vote = 'approve' | 'reject' | 'cancel'

const voteWords: Record<Vote, { title: string; button: string; stop: string }> = {
  approve: { title: 'Approve', button: 'Approve it', stop: 'Do not approve' },
  reject: { title: 'Reject', button: 'Reject it', stop: 'Do not reject' },
  cancel: { title: 'Take back', button: 'Take it back', stop: 'Let it wait' },
}

interface DecisionProps {
  session: SignedIn
  proposal: Proposal
  decided: () => void
}

/** Buttons that decide, each behind a question that says what follows. */
export function Decision({ session, proposal, decided }: DecisionProps) {
  const { who } = session
  const [asking, setAsking] = useState<Vote | undefined>(undefined)
  const [said, setSaid] = useState('')
  const place = useRef<HTMLParagraphElement>(null)
  useEffect(() => {
    // The buttons may be gone.
    if (said !== '') place.current?.focus()
  }, [said])
  const isOpen = proposal.state === 'proposed'
  const bar = approvalBar(proposal, who)
  const mayCancel = proposal.proposer === who.principal || may(who, 'admin:*')
  return (
    <section aria-labelledby="decision-title">
      <h3 id="decision-title">{isOpen ? 'Your decision' : 'Decided'}</h3>
      <p role="status" class="said" ref={place} tabIndex={-1}>
        {said}
      </p>
      {!isOpen && said === '' && (
        <p class="muted">This proposal is {proposal.state}, and cannot be decided any more.</p>
      )}
      {isOpen && (
        <>
          {bar !== undefined && <p class="notice">{bar}.</p>}
          <div class="buttons">
            <button
              type="button"
              class="primary"
              disabled={bar !== undefined}
              onClick={() => setAsking('approve')}
            >
              Approve
            </button>
            <button
              type="button"
              disabled={!may(who, 'proposals:decide')}
              onClick={() => setAsking('reject')}
            >
              Reject
            </button>
            {mayCancel && (
              <button type="button" class="quiet" onClick={() => setAsking('cancel')}>
                Take back
              </button>
            )}
          </div>
        </>
      )}
      {asking !== undefined && (
        <Question
          session={session}
          proposal={proposal}
          vote={asking}
          close={() => setAsking(undefined)}
          done={(after) => {
            setSaid(outcomeText(asking, after))
            decided()
          }}
        />
      )}
    </section>
  )
}

function outcomeText(vote: Vote, { state }: Proposal): string {
  if (vote === 'cancel') return 'You have taken it back'
  if (vote === 'reject') return 'You have rejected it'
  if (state === 'applied') return 'You have approved it, and it has taken effect'
  return state === 'proposed'
    ? 'You have approved it. It waits for another approval'
    : `You have approved it, and it was ${state}`
}

function Question(props: {
  session: SignedIn
  proposal: Proposal
  vote: Vote
  close: () => void
  done: (after: Proposal) => void
}) {
  const { session, proposal, vote, close, done } = props
  const { title, button, stop } = voteWords[vote]
  const { proposal_id: id, agent, action, target } = proposal
  const after = useRef<Proposal>(undefined)
  const isErasing = vote === 'approve' && action === 'erase'
  const what = 'the last 8 digits of the record’s hash'
  return (
    <Confirm
      change={{
        title,
        heading: `${title}: ${whatText(proposal)}`,
        button,
        stop,
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
        Agent <strong>{agent}</strong>. {followsText(vote, proposal)}
      </p>
    </Confirm>
  )
}

function followsText(vote: Vote, proposal: Proposal): string {
  if (vote === 'reject')
    return 'It ends without an effect. Whoever wants the change has to propose it again. Your vote is a signed record.'
  if (vote === 'cancel') return 'It ends without an effect, by a signed record that names you.'
  const left = approvalsNeeded(proposal) - approvalsOf(proposal).length
  const when =
    left > 1 ? 'It takes effect when somebody else has approved it as well.' : 'It takes effect at once.'
  return `${when} ${effectText(proposal)}`
}
