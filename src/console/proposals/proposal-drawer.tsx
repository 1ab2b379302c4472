import type { Proposal } from '../../client/index.js'
import { Dialog } from '../parts/dialog.js'
import { useLoaded } from '../parts/load.js'
import { principalText } from '../parts/principal.js'
import { Failure, Loading, Time } from '../parts/texts.js'
import { agentLink } from '../route.js'
import { type SignedIn, may } from '../parts/session.js'
import { Change } from './change.js'
import { Decision } from './decision.js'
import { placeOf, readProposal, readSteps } from './read.js'
import { When } from './when.js'
import { reasonText, whatText } from '../parts/proposal-words.js'

/** One proposal: what it would do, who says what about it, and the decision. */
export function ProposalDrawer(props: {
  session: SignedIn
  id: string
  decided: () => void
  close: () => void
}) {
  const { session, id, decided, close } = props
  const { loaded, reload } = useLoaded(id, (signal) => readProposal(session.service, id, signal))
  const proposal = loaded.value
  return (
    <Dialog title="Proposal" class="drawer" close={close}>
      <div class="drawer-head">
        <h2>{proposal === undefined ? 'Proposal' : whatText(proposal)}</h2>
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      </div>
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={reload} />}
      {loaded.kind === 'loading' && proposal === undefined && <Loading what="the proposal" />}
      {loaded.kind === 'loaded' && proposal === undefined && <p class="notice">There is no proposal {id}.</p>}
      {proposal !== undefined && (
        <>
          <Facts proposal={proposal} />
          <Decision
            session={session}
            proposal={proposal}
            decided={() => {
              reload()
              decided()
            }}
          />
          <Change session={session} proposal={proposal} />
          <SignedSteps session={session} proposal={proposal} />
        </>
      )}
    </Dialog>
  )
}

function Facts({ proposal }: { proposal: Proposal }) {
  const { agent, zone, proposer, created_at_ms: createdAtMs, expires_at_ms: expiresAtMs } = proposal
  return (
    <dl class="facts">
      <dt>Agent</dt>
      <dd>
        <a href={agentLink(agent)}>{agent}</a>, by the rule of zone <span class="zone">{zone}</span>
      </dd>
      <dt>Proposed by</dt>
      <dd>
        <span title={proposer}>{principalText(proposer)}</span>, <Time ms={createdAtMs} />
      </dd>
      <dt>{proposal.state === 'proposed' ? 'Takes effect' : 'State'}</dt>
      <dd>
        <When proposal={proposal} />
        {proposal.reason !== null && <>: {reasonText(proposal.reason)}</>}
      </dd>
      {proposal.state === 'proposed' && proposal.effective_at_ms === null && (
        <>
          <dt>Expires</dt>
          <dd>
            <Time ms={expiresAtMs} />, if nobody decides
          </dd>
        </>
      )}
    </dl>
  )
}

/** The records that tell of the proposal, each signed with the agent's key. */
function SignedSteps({ session: { service, who }, proposal }: { session: SignedIn; proposal: Proposal }) {
  const { proposal_id: id, proposer, created_at_ms: createdAtMs, votes, state } = proposal
  const { agent, seq } = placeOf(id)
  const mayRead = may(who, 'records:read')
  const { loaded, reload } = useLoaded(`${id} ${state} ${votes.length}`, async (signal) =>
    mayRead ? readSteps(service, proposal, signal) : [],
  )
  const first = { seq, ms: createdAtMs, text: `Proposed by ${principalText(proposer)}` }
  return (
    <section>
      <h3>Signed records of it</h3>
      {!mayRead && (
        <p class="muted">
          The records behind the first one need <code>records:read</code>.
        </p>
      )}
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={reload} />}
      <ol class="signed-steps">
        {[first, ...(loaded.value ?? [])].map((step) => (
          <li key={step.seq}>
            <span>{step.text}</span>
            <Time ms={step.ms} />
            <a href={agentLink(agent, step.seq)}>Record {step.seq}</a>
          </li>
        ))}
      </ol>
    </section>
  )
}
