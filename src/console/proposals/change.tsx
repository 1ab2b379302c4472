import type { Proposal } from '../../client/index.js'
import { countText, keyDigits, msOf, shortHash } from '../parts/format.js'
import { useLoaded } from '../parts/load.js'
import { CopyButton, Failure, Time } from '../parts/texts.js'
import { BodyTree } from '../records/body-tree.js'
import { operatorWords } from '../records/filter.js'
import { agentLink } from '../route.js'
import { type SignedIn, may } from '../shell/session.js'
import { scopeMeanings, zoneMeanings } from '../shell/words.js'
import { type Policy, readPoliciesBefore } from './read.js'
import { effectText } from './words.js'

interface ChangeProps {
  session: SignedIn
  proposal: Proposal
}

/** What a proposal would change. */
export function Change({ session, proposal }: ChangeProps) {
  return (
    <section>
      <h3>What it changes</h3>
      <p>{effectText(proposal)}</p>
      {proposal.target !== null && <Target session={session} proposal={proposal} hash={proposal.target} />}
      {proposal.target === null && <OfAgent session={session} proposal={proposal} />}
    </section>
  )
}

function OfAgent({ session, proposal }: ChangeProps) {
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
      <p>
        The new key is <code title={change.public_key}>…{keyDigits(change.public_key)}</code>{' '}
        <CopyButton text={change.public_key} name="the new key" />
      </p>
    )
  }
  if (change?.edge !== undefined) {
    return (
      <p>
        The edge of type <code>{change.edge.edge_type}</code> from {proposal.agent} to {change.edge.dst}
      </p>
    )
  }
  return change?.api_key === undefined ? null : <ProposedKey apiKey={change.api_key} />
}

/** The record that it is about, as it is now. */
function Target({ session: { service, who }, proposal, hash }: ChangeProps & { hash: string }) {
  const { agent, state } = proposal
  const mayRead = may(who, 'records:read')
  const { loaded, reload } = useLoaded(`${hash} ${state}`, async (signal) =>
    mayRead ? service.agent<unknown>(agent).get(hash, { signal }) : undefined,
  )
  if (loaded.kind === 'failed') return <Failure message={loaded.message} retry={reload} />
  const record = loaded.value
  if (record === undefined) {
    return (
      <p>
        The record <code title={hash}>{shortHash(hash)}</code>
        {!mayRead && (
          <span class="muted">
            {' '}
            (showing it needs <code>records:read</code>)
          </span>
        )}
      </p>
    )
  }
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
  const mayRead = may(who, 'records:read')
  const { loaded, reload } = useLoaded(proposal.proposal_id, async (signal) =>
    mayRead ? readPoliciesBefore(service, proposal, signal) : undefined,
  )
  if (loaded.kind === 'failed') return <Failure message={loaded.message} retry={reload} />
  if (loaded.kind === 'loading') return null
  const before = loaded.value
  return (
    <>
      {before === undefined && (
        <p class="muted">
          Which of these rules are new needs <code>records:read</code>.
        </p>
      )}
      <Diff rows={policyRows(before, after)} />
      {after.length === 0 && <p class="notice">Without a rule, users reach nothing of this agent.</p>}
    </>
  )
}

/** The lines of a change of rules: any one of them suffices, so their order says nothing. */
export function policyRows(before: readonly Policy[] | undefined, after: readonly Policy[]): DiffRow[] {
  const had = new Set((before ?? after).map(keyOf))
  const has = new Set(after.map(keyOf))
  const gone = (before ?? []).filter((one) => !has.has(keyOf(one)))
  return [
    ...gone.map((policy) => ({ sign: '−' as const, ...policyText(policy) })),
    ...after.map((policy) => ({
      sign: had.has(keyOf(policy)) ? (' ' as const) : ('+' as const),
      ...policyText(policy),
    })),
  ]
}

function keyOf({ actions, conditions }: Policy): string {
  return JSON.stringify([actions, conditions.map(({ field, op, value }) => [field, op, value])])
}

function policyText({ actions, conditions }: Policy): Pick<DiffRow, 'text' | 'more'> {
  const parts = conditions.map(conditionText)
  return {
    text: actions.join(', '),
    more: parts.length === 0 ? 'every record' : `records whose ${parts.join(' and ')}`,
  }
}

/** A condition in words. */
export function conditionText({ field, op, value }: Policy['conditions'][number]): string {
  return op === 'exists' && typeof value === 'boolean'
    ? `${field} ${value ? 'is there' : 'is not there'}`
    : `${field} ${operatorWords[op]} ${JSON.stringify(value)}`
}

/** A line of a change: what goes, what comes, what stays. */
export interface DiffRow {
  sign: '−' | '+' | ' '
  text: string
  more: string
}

const diffWords: Record<DiffRow['sign'], { name: string; word: string }> = {
  '−': { name: 'gone', word: 'Goes' },
  '+': { name: 'new', word: 'Comes' },
  ' ': { name: 'same', word: 'Stays' },
}

/** The lines of a change. */
export function Diff({ rows }: { rows: readonly DiffRow[] }) {
  return (
    <ul class="diff">
      {rows.map(({ sign, text, more }, at) => (
        // The rows of a change stay in their places.
        <li key={at} class={diffWords[sign].name}>
          <span class="sign" aria-hidden="true">
            {sign}
          </span>
          <span class="hidden">{diffWords[sign].word}: </span>
          <span>
            <code>{text}</code> {more}
          </span>
        </li>
      ))}
    </ul>
  )
}

function ProposedKey({ apiKey }: { apiKey: NonNullable<NonNullable<Proposal['change']>['api_key']> }) {
  const meanings: Record<string, string> = scopeMeanings
  const { key_id: id, name, scopes, agents, expires_at_ms: expiresAtMs } = apiKey
  return (
    <dl class="facts">
      <dt>Name</dt>
      <dd>{name}</dd>
      <dt>Id</dt>
      <dd class="long">
        <code>{id}</code>
      </dd>
      <dt>May</dt>
      <dd>
        <ul class="plain">
          {scopes.map((scope) => (
            <li key={scope}>
              {meanings[scope]} <code class="muted">{scope}</code>
            </li>
          ))}
        </ul>
      </dd>
      <dt>Agents</dt>
      <dd>{agents.length === 0 ? 'All' : agents.join(', ')}</dd>
      <dt>Expires</dt>
      <dd>{expiresAtMs === null ? 'Never' : <Time ms={expiresAtMs} />}</dd>
    </dl>
  )
}
