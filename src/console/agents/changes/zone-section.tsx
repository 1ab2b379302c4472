import { useState } from 'preact/hooks'
import type { Zone, ZoneChanged } from '../../../client/index.js'
import { useFocusAfter } from '../../parts/confirm.js'
import { ScopedButton } from '../../parts/texts.js'
import { ZoneChoice } from '../../parts/zone-choice.js'
import { may } from '../../parts/session.js'
import { ChangeAgent } from './change-agent.js'
import { type ChangeProps, Rule, Waiting, WayBack } from './rule.js'
import { leftByZone } from './words.js'

/** The zone of an agent, and another one. */
export function ZoneSection(props: ChangeProps) {
  const { session, status, waiting } = props
  const { zone } = status
  const [chosen, setChosen] = useState<Zone>(zone)
  const [isAsking, setAsking] = useState(false)
  const { place, changed } = useFocusAfter<HTMLHeadingElement>(props.reload)
  return (
    <section aria-labelledby="zone-title">
      <h2 id="zone-title" ref={place} tabIndex={-1}>
        Zone
      </h2>
      <ZoneChoice
        name="What may happen to records once they are written"
        chosen={chosen}
        now={zone}
        set={setChosen}
      />
      {waiting === undefined ? (
        <ZoneButton
          mayChange={may(session.who, 'agents:admin')}
          isOther={chosen !== zone}
          ask={() => setAsking(true)}
        />
      ) : (
        <Waiting proposal={waiting} />
      )}
      {isAsking && (
        <ZoneQuestion {...props} chosen={chosen} reload={changed} close={() => setAsking(false)} />
      )}
    </section>
  )
}

function ZoneButton(props: { mayChange: boolean; isOther: boolean; ask: () => void }) {
  const { mayChange, isOther, ask } = props
  if (mayChange && !isOther) {
    return (
      <span class="scoped">
        <button type="button" disabled>
          Change the zone
        </button>
        <small>choose another zone first</small>
      </span>
    )
  }
  return (
    <ScopedButton allowed={mayChange} scope="agents:admin" onClick={ask}>
      Change the zone
    </ScopedButton>
  )
}

function ZoneQuestion(props: ChangeProps & { chosen: Zone; close: () => void }) {
  const { session, status, deciding, reload, chosen, close } = props
  const { agent_id: agent, zone } = status
  return (
    <ChangeAgent<ZoneChanged>
      change={{
        agent,
        title: `Change the zone of ${agent} to ${chosen}`,
        left: leftByZone(zone, chosen),
        button: zone === 'free' ? 'Change it' : 'Propose it',
        confirm: chosen === 'immutable_core' ? { wanted: agent, what: 'the name of the agent' } : undefined,
        apply: () => session.service.agent(agent).setZone(chosen),
        told: (applied) => ({ text: `The agent is in the zone ${applied.zone} now.` }),
      }}
      rule={
        <>
          <Rule session={session} status={status} deciding={deciding} />
          <WayBack session={session} agent={agent} zone={chosen} deciding={deciding} />
        </>
      }
      close={(isChanged) => {
        close()
        if (isChanged) reload()
      }}
    />
  )
}
