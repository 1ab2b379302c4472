import type { NucleotideRecord, ProposalView } from '../../client/index.js'
import { Dialog } from '../parts/dialog.js'
import { Read, useLoaded } from '../parts/load.js'
import { type KeyNames, Principal, useKeyNames } from '../parts/principal.js'
import { Button, CopyButton, Facts, Failure, Name, Quoted, Time } from '../parts/texts.js'
import { agentLink } from '../route.js'
import { hasScope, type SignedIn } from '../parts/session.js'
import { Decision } from './decision.js'
import { proposalOrigin, readPoliciesBefore, readProposal, readSteps } from './read.js'
import { approvalsNeeded, approvalsOf, effectText, reasonText, whatText } from '../parts/proposal-labels.js'
import { Countdown } from '../parts/now.js'
import { countText, keyDigits, msOf, shortHash } from '../parts/format.js'
import { Diff, type Policy, policyRows } from '../parts/rule-diff.js'
import { BodyTree } from '../parts/records/body-tree.js'
import { scopeMeanings, zoneMeanings } from '../parts/labels.js'

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

interface ChangeProps {
  session: SignedIn
  proposal: ProposalView
}

export function Change({ session, proposal }: ChangeProps) {
  return (
    <section aria-labelledby="changes-title">
      <h3 id="changes-title">Changes</h3>
      <p>{effectText(proposal)}</p>
      {proposal.target !== null && <Target session={session} proposal={proposal} hash={proposal.target} />}
      {proposal.target === null && <ChangeOfAgent session={session} proposal={proposal} />}
      <h4>Members of the signed record</h4>
      <BodyTree value={signedMembers(proposal)} />
    </section>
  )
}

/** Everything that the server shows of the record of a proposal, also members that this page does not know. */
function signedMembers(proposal: ProposalView): Record<string, unknown> {
  const { action, target, target_seq: targetSeq, change, proposer, line, zone } = proposal
  return {
    action,
    ...(target !== null && { target, target_seq: targetSeq }),
    ...change,
    principal: proposer,
    line,
    in_zone: zone,
    effective_at_ms: proposal.effective_at_ms,
    expires_at_ms: proposal.expires_at_ms,
  }
}

function ChangeOfAgent({ session, proposal }: ChangeProps) {
  const { change, zone } = proposal
  if (change?.zone !== undefined) {
    const { zone: next } = change
    return (
      <Diff
        rows={[
          { sign: '−', text: zone, more: zoneMeanings[zone] },
          { sign: '+', text: next, more: zoneMeanings[next] },
        ]}
      />
    )
  }
  if (change?.policies !== undefined)
    return <Policies session={session} proposal={proposal} after={change.policies} />
  if (change?.public_key !== undefined) {
    return (
      <>
        <p>
          The new key is <code title={change.public_key}>…{keyDigits(change.public_key)}</code>{' '}
          <CopyButton text={change.public_key} name="the new key" />
        </p>
        {change.reason === 'compromise' && (
          <p class="notice warn">The signed record will mark the old key as compromised.</p>
        )}
      </>
    )
  }
  if (change?.edge !== undefined) {
    return (
      <p>
        The edge of type <Quoted value={change.edge.edge_type} /> from {proposal.agent} to {change.edge.dst}
      </p>
    )
  }
  return change?.api_key === undefined ? null : <ProposedKey apiKey={change.api_key} />
}

/** The current state of the target record. */
function Target({ session: { service, who }, proposal, hash }: ChangeProps & { hash: string }) {
  const { agent, state } = proposal
  const mayRead = hasScope(who, 'records:read')
  const read = useLoaded(`${hash} ${state}`, async (signal) =>
    mayRead ? service.agent<unknown>(agent).get(hash, { signal }) : undefined,
  )
  if (!mayRead) {
    return (
      <p>
        The record <code title={hash}>{shortHash(hash)}</code>
        <span class="muted">
          {' '}
          (reading it needs <code>records:read</code>)
        </span>
      </p>
    )
  }
  return (
    <Read of={read} what="the record">
      {(record) => record !== undefined && <TargetRecord agent={agent} record={record} />}
    </Read>
  )
}

function TargetRecord({ agent, record }: { agent: string; record: NucleotideRecord<unknown> }) {
  const { seq, type, timestamp_hlc: hlc, payload, deleted, erased } = record
  return (
    <>
      <p>
        <a href={agentLink(agent, seq)}>Record {countText(seq)}</a> <code>{type}</code>{' '}
        <Time ms={msOf(hlc)} /> {deleted && <span class="badge deleted">deleted</span>}
        {erased && <span class="badge erased">erased</span>}
      </p>
      {!erased && <BodyTree value={payload} />}
    </>
  )
}

function Policies({ session: { service, who }, proposal, after }: ChangeProps & { after: Policy[] }) {
  const mayRead = hasScope(who, 'records:read')
  const read = useLoaded(proposal.proposal_id, async (signal) =>
    mayRead ? readPoliciesBefore(service, proposal, signal) : undefined,
  )
  return (
    <Read of={read} what="the previous rules">
      {(before) => (
        <>
          {before === undefined && (
            <p class="muted">
              Comparing with the previous rules needs <code>records:read</code>.
            </p>
          )}
          <Diff rows={policyRows(before, after)} />
          {after.length === 0 && <p class="notice">Without rules, users cannot access this agent.</p>}
        </>
      )}
    </Read>
  )
}

function ProposedKey({ apiKey }: { apiKey: NonNullable<NonNullable<ProposalView['change']>['api_key']> }) {
  const meanings: Record<string, string> = scopeMeanings
  const { key_id: id, name, scopes, agents, expires_at_ms: expiresAtMs } = apiKey
  return (
    <Facts
      facts={{
        Name: <Name text={name} />,
        ID: <code>{id}</code>,
        Permissions: (
          <ul class="plain">
            {scopes.map((scope) => (
              <li key={scope}>
                {meanings[scope]} <code class="muted">{scope}</code>
              </li>
            ))}
          </ul>
        ),
        Agents: agents.length === 0 ? 'All' : agents.join(', '),
        Expires: expiresAtMs === null ? 'Never' : <Time ms={expiresAtMs} />,
      }}
    />
  )
}
