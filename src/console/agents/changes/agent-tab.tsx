import type {
  AgentStatusResponse,
  KeyRotated,
  ProposalView,
  Zone,
  ZoneChanged,
} from '../../../client/index.js'
import { useLoaded } from '../../parts/load.js'
import { Button, CopyButton, Failure, ScopedButton } from '../../parts/texts.js'
import { hasScope, type SignedIn } from '../../parts/session.js'
import { readApprovalContext } from './approvers.js'
import { useState } from 'preact/hooks'
import { useFocusAfter } from '../../parts/confirm.js'
import { Tick, ZoneChoice } from '../../parts/field.js'
import { keyDigits } from '../../parts/format.js'
import {
  ChangeAgent,
  type ChangeProps,
  PendingProposal,
  ReturnWarning,
  rotationConsequences,
  Rule,
  zoneConsequences,
} from './change-agent.js'

const PROPOSALS_MAX = 1_000

/** Changes the zone and the key of an agent, after listing the consequences. */
export function AgentTab(props: { session: SignedIn; status: AgentStatusResponse; reload: () => void }) {
  const { session, status, reload } = props
  const { agent_id: agent, timestamp_hlc: hlc } = status
  const deciding = useLoaded('', (signal) => readApprovalContext(session, signal))
  const pending = useLoaded(hlc, (signal) => readPending(session, agent, signal))
  // No organism can have the id `server`.
  if (agent.startsWith('server::'))
    return <p class="notice">This agent belongs to the server. Its zone and its key cannot be changed.</p>
  const { value: proposals = [] } = pending.loaded
  const shared = { session, status, reload, deciding: deciding.loaded.value }
  return (
    <div class="agent-changes">
      {[deciding, pending].map(
        ({ loaded, reload: again }, at) =>
          loaded.kind === 'failed' && <Failure key={at} message={loaded.message} retry={again} />,
      )}
      <section aria-labelledby="rule-title">
        <h2 id="rule-title">When a change takes effect</h2>
        <Rule session={session} status={status} deciding={shared.deciding} />
      </section>
      <ZoneSection {...shared} pending={proposals.find(({ action }) => action === 'zone')} />
      <KeySection {...shared} pending={proposals.find(({ action }) => action === 'rotate_key')} />
    </div>
  )
}

/** Reads the open proposals of the agent; empty if the key cannot read proposals. */
async function readPending(
  { service, who }: SignedIn,
  agent: string,
  signal: AbortSignal,
): Promise<ProposalView[]> {
  if (!hasScope(who, 'proposals:decide')) return []
  const page = await service.proposals.list({ agent, state: 'proposed', limit: PROPOSALS_MAX, signal })
  return page.proposals
}

function KeySection(props: ChangeProps) {
  const { session, status, pending } = props
  const { public_key: key } = status
  const [isConfirming, setConfirming] = useState(false)
  const { focusTarget, changed } = useFocusAfter<HTMLHeadingElement>(props.reload)
  return (
    <section aria-labelledby="key-title">
      <h2 id="key-title" ref={focusTarget} tabIndex={-1}>
        Key
      </h2>
      <p class="long">
        New records are signed with <code>{key}</code> <CopyButton text={key} name="the current key" />
      </p>
      <p class="muted">
        The server generates the new key pair and never discloses the secret key. An agent can change its key
        255 times.
      </p>
      {pending === undefined ? (
        <ScopedButton
          text="Change key"
          allowed={hasScope(session.who, 'agents:admin')}
          scope="agents:admin"
          onClick={() => setConfirming(true)}
        />
      ) : (
        <PendingProposal proposal={pending} />
      )}
      {isConfirming && <ConfirmKeyChange {...props} reload={changed} close={() => setConfirming(false)} />}
    </section>
  )
}

function ConfirmKeyChange(props: ChangeProps & { close: () => void }) {
  const { session, status, deciding, reload, close } = props
  const { agent_id: agent, zone, public_key: key } = status
  const [isLeaked, setLeaked] = useState(false)
  return (
    <ChangeAgent<KeyRotated>
      change={{
        agent,
        title: `Change the key of ${agent}`,
        consequences: rotationConsequences(isLeaked),
        button: zone === 'free' ? 'Change key permanently' : 'Propose change',
        confirm: { wanted: keyDigits(key), what: 'the last 8 digits of the current key' },
        apply: () => {
          const reason = isLeaked ? { reason: 'compromise' as const } : {}
          return session.service.agent(agent).rotateKey(undefined, reason)
        },
        resultOf: ({ public_key: publicKey }) => ({
          publicKey,
          text: isLeaked
            ? 'New records are signed with the key below. Give the key and the strand to everyone who verifies exports.'
            : 'New records are signed with the key below.',
        }),
      }}
      rule={<Rule session={session} status={status} deciding={deciding} />}
      close={(isChanged) => {
        close()
        if (isChanged) reload()
      }}
    >
      <Tick isOn={isLeaked} set={setLeaked}>
        The old key may be compromised
      </Tick>
    </ChangeAgent>
  )
}

function ZoneSection(props: ChangeProps) {
  const { session, status, pending } = props
  const { zone } = status
  const [chosen, setChosen] = useState<Zone>(zone)
  const [isConfirming, setConfirming] = useState(false)
  const { focusTarget, changed } = useFocusAfter<HTMLHeadingElement>(props.reload)
  return (
    <section aria-labelledby="zone-title">
      <h2 id="zone-title" ref={focusTarget} tabIndex={-1}>
        Zone
      </h2>
      <ZoneChoice name="How written records can be changed" chosen={chosen} now={zone} set={setChosen} />
      {pending === undefined ? (
        <ZoneButton
          mayChange={hasScope(session.who, 'agents:admin')}
          isOther={chosen !== zone}
          confirm={() => setConfirming(true)}
        />
      ) : (
        <PendingProposal proposal={pending} />
      )}
      {isConfirming && (
        <ConfirmZoneChange {...props} chosen={chosen} reload={changed} close={() => setConfirming(false)} />
      )}
    </section>
  )
}

function ZoneButton(props: { mayChange: boolean; isOther: boolean; confirm: () => void }) {
  const { mayChange, isOther, confirm } = props
  if (mayChange && !isOther) {
    return (
      <span class="scoped">
        <Button text="Change zone" disabled />
        <small>choose another zone first</small>
      </span>
    )
  }
  return <ScopedButton text="Change zone" allowed={mayChange} scope="agents:admin" onClick={confirm} />
}

function ConfirmZoneChange(props: ChangeProps & { chosen: Zone; close: () => void }) {
  const { session, status, deciding, reload, chosen, close } = props
  const { agent_id: agent, zone } = status
  return (
    <ChangeAgent<ZoneChanged>
      change={{
        agent,
        title: `Change the zone of ${agent} to ${chosen}`,
        consequences: zoneConsequences(zone, chosen),
        button: zone === 'free' ? `Change to ${chosen}` : 'Propose change',
        confirm: chosen === 'immutable_core' ? { wanted: agent, what: 'the name of the agent' } : undefined,
        apply: () => session.service.agent(agent).setZone(chosen),
        resultOf: (applied) => ({ text: `The agent is now in zone ${applied.zone}.` }),
      }}
      rule={
        <>
          <Rule session={session} status={status} deciding={deciding} />
          <ReturnWarning session={session} agent={agent} zone={chosen} deciding={deciding} />
        </>
      }
      close={(isChanged) => {
        close()
        if (isChanged) reload()
      }}
    />
  )
}
