import type { ProposalView } from '../../client/index.js'
import { Dialog } from '../parts/dialog.js'
import { Read, useLoaded } from '../parts/load.js'
import { type KeyNames, Principal, useKeyNames } from '../parts/principal.js'
import { Button, Facts, Failure, Time } from '../parts/texts.js'
import { agentLink } from '../route.js'
import { hasScope, type SignedIn } from '../parts/session.js'
import { Change } from './change.js'
import { Decision } from './decision.js'
import { proposalOrigin, readProposal, readSteps } from './read.js'
import { approvalsNeeded, approvalsOf, reasonText, whatText } from '../parts/proposal-labels.js'
import { Countdown } from '../parts/now.js'

/** The drawer of a proposal: its facts, the decision, the changes and the signed records. */
export function ProposalDrawer(props: {
  session: SignedIn
  id: string
  decided: () => void
  close: () => void
}) {
  const { session, id, decided, close } = props
  const read = useLoaded(id, (signal) => readProposal(session.service, id, signal))
  const { value } = read.loaded
  const names = useKeyNames(session)
  return (
    <Dialog title="ProposalView" class="drawer" close={close}>
      <div class="drawer-head">
        <h2>{value === undefined ? 'Proposal' : whatText(value)}</h2>
        <Button text="Close" class="quiet" onClick={close} />
      </div>
      <Read of={read} what="the proposal">
        {(proposal) =>
          proposal === undefined ? (
            <p class="notice">ProposalView {id} not found.</p>
          ) : (
            <>
              <ProposalFacts session={session} proposal={proposal} names={names} />
              <Decision
                session={session}
                proposal={proposal}
                decided={() => {
                  read.reload()
                  decided()
                }}
              />
              <Change session={session} proposal={proposal} />
              <SignedSteps session={session} proposal={proposal} names={names} />
            </>
          )
        }
      </Read>
    </Dialog>
  )
}

interface ShownProposal {
  session: SignedIn
  proposal: ProposalView
  names: KeyNames
}

function ProposalFacts({ session: { who }, proposal, names }: ShownProposal) {
  const { agent, zone, proposer, created_at_ms: createdAtMs, expires_at_ms: expiresAtMs } = proposal
  const isOpen = proposal.state === 'proposed'
  return (
    <Facts
      facts={{
        Agent: (
          <>
            <a href={agentLink(agent)}>{agent}</a>, zone <span class="zone">{zone}</span>
          </>
        ),
        'Proposed by': (
          <>
            <Principal id={proposer} names={names} who={who} />, <Time ms={createdAtMs} />
          </>
        ),
        [isOpen ? 'Takes effect' : 'State']: (
          <>
            <When proposal={proposal} />
            {proposal.reason !== null && <>: {reasonText(proposal.reason)}</>}
          </>
        ),
        Expires:
          isOpen && proposal.effective_at_ms === null ? (
            <>
              <Time ms={expiresAtMs} />, if it is not decided before
            </>
          ) : undefined,
      }}
    />
  )
}

/** The records of the proposal, signed with the agent's key. */
function SignedSteps({ session: { service, who }, proposal, names }: ShownProposal) {
  const { proposal_id: id, proposer, created_at_ms: createdAtMs, votes, state } = proposal
  const { agent, seq } = proposalOrigin(id)
  const mayRead = hasScope(who, 'records:read')
  const { loaded, reload } = useLoaded(`${id} ${state} ${votes.length}`, async (signal) =>
    mayRead ? readSteps(service, proposal, signal) : [],
  )
  const first = { seq, ms: createdAtMs, text: 'Proposed', principal: proposer }
  return (
    <section>
      <h3>Signed records</h3>
      {!mayRead && (
        <p class="muted">
          Reading the later records needs <code>records:read</code>.
        </p>
      )}
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={reload} />}
      <ol class="signed-steps">
        {[first, ...(loaded.value ?? [])].map((step) => (
          <li key={step.seq}>
            <span>
              {step.text}
              {step.principal !== undefined && (
                <>
                  {' '}
                  by <Principal id={step.principal} names={names} who={who} />
                </>
              )}
            </span>
            <Time ms={step.ms} />
            <a href={agentLink(agent, step.seq)}>Record {step.seq}</a>
          </li>
        ))}
      </ol>
    </section>
  )
}

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
