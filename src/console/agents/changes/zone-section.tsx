import { useState } from 'preact/hooks'
import type { Zone, ZoneChanged } from '../../../client/index.js'
import { useFocusAfter } from '../../parts/confirm.js'
import { Button, ScopedButton } from '../../parts/texts.js'
import { ZoneChoice } from '../../parts/zone-choice.js'
import { hasScope } from '../../parts/session.js'
import { ChangeAgent } from './change-agent.js'
import { type ChangeProps, PendingProposal, ReturnWarning, Rule } from './rule.js'
import { zoneConsequences } from './consequences.js'

export function ZoneSection(props: ChangeProps) {
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
  return (
    <ScopedButton allowed={mayChange} scope="agents:admin" onClick={confirm}>
      Change zone
    </ScopedButton>
  )
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
