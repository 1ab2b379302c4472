import { useEffect, useRef } from 'preact/hooks'
import type { AgentStatusResponse } from '../../client/index.js'
import { bytesText, countText, msOf, recordsText } from '../parts/format.js'
import { lazy, Read, useLoaded } from '../parts/load.js'
import { Hash, Key, LineFacts, Time } from '../parts/texts.js'
import { ProofTab } from './proof-tab.js'
import { LiveTab } from './records/live-tab.js'
import { RecordsTab } from './records/records-tab.js'
import { agentLink, type AgentTab, agentTabs, query, type Route } from '../route.js'
import type { SignedIn } from '../parts/session.js'
import { zoneMeanings } from '../parts/labels.js'

const AgentTab = lazy(async () => (await import('./changes/agent-tab.js')).AgentTab)
const GraphTab = lazy(async () => (await import('./graph/graph-tab.js')).GraphTab)
const TimeTab = lazy(async () => (await import('./time/time-tab.js')).TimeTab)
const RulesTab = lazy(async () => (await import('./rules/rules-tab.js')).RulesTab)

type AgentRoute = Extract<Route, { screen: 'agent' }>

const tabNames: Record<AgentTab, string> = {
  records: 'Records',
  live: 'Live',
  time: 'Time',
  proof: 'Proof',
  graph: 'Graph',
  rules: 'Rules',
  agent: 'Settings',
}

/** One agent: its facts, and tabs for its records, live view, proof and settings. */
export function AgentPage({ session, route }: { session: SignedIn; route: AgentRoute }) {
  const { agent, tab } = route
  const { service } = session
  // The link to a tab leads back to what it showed.
  const shown = useRef<Partial<Record<AgentTab, string>>>({})
  shown.current[tab] = query.value
  const read = useLoaded(agent, (signal) => service.agent(agent).status({ signal }))
  const { reload } = read
  // Each tab shows the current state of the agent.
  const shownTab = useRef(tab)
  useEffect(() => {
    if (shownTab.current !== tab) reload()
    shownTab.current = tab
  }, [tab])
  return (
    <div class="page">
      <p class="trail">
        <a href="#/agents">Agents</a> <span aria-hidden="true">/</span>
      </p>
      <h1 class="agent-name">{agent}</h1>
      <Read of={read} what="the agent">
        {(status) => (
          <>
            <AgentFacts status={status} />
            <Tabs agent={agent} tab={tab} shown={shown.current} />
            <div role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`}>
              {tab === 'records' && (
                <RecordsTab
                  session={session}
                  status={status}
                  seq={route.seq}
                  address={query.value}
                  reload={reload}
                />
              )}
              {tab === 'live' && <LiveTab service={service} status={status} />}
              {tab === 'time' && <TimeTab service={service} status={status} reload={reload} />}
              {tab === 'proof' && <ProofTab service={service} status={status} />}
              {tab === 'graph' && <GraphTab session={session} agent={agent} />}
              {tab === 'rules' && <RulesTab session={session} status={status} reload={reload} />}
              {tab === 'agent' && <AgentTab session={session} status={status} reload={reload} />}
            </div>
          </>
        )}
      </Read>
    </div>
  )
}

function AgentFacts({ status }: { status: AgentStatusResponse }) {
  const { zone, record_count: records, bytes, timestamp_hlc: hlc, strand, public_key: key } = status
  const { imported_records: imported } = status
  return (
    <LineFacts
      facts={{
        Zone: <span title={zoneMeanings[zone]}>{zone}</span>,
        Records: `${countText(records)} and the genesis, ${bytesText(bytes)}`,
        Imported: imported > 0 ? `The first ${recordsText(imported)}` : undefined,
        'Last write': <Time ms={msOf(hlc)} />,
        Strand: <Hash hex={strand} name="the strand" />,
        Key: <Key hex={key} name="the public key" />,
      }}
    />
  )
}

/** @param props.shown what each tab showed last, as in its address */
function Tabs(props: { agent: string; tab: AgentTab; shown: Readonly<Partial<Record<AgentTab, string>>> }) {
  const { agent, tab, shown } = props
  const link = (one: AgentTab): string => agentLink(agent, one, shown[one])
  const move = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    const next = agentTabs.at((agentTabs.indexOf(tab) + step) % agentTabs.length) ?? tab
    location.hash = link(next)
    document.querySelector<HTMLElement>(`#tab-${next}`)?.focus()
  }
  // On a narrow screen the tabs scroll.
  useEffect(() => document.querySelector(`#tab-${tab}`)?.scrollIntoView({ block: 'nearest' }), [tab])
  return (
    <div class="tabs" role="tablist" aria-label={`Parts of ${agent}`} onKeyDown={move}>
      {agentTabs.map((one) => (
        <a
          key={one}
          id={`tab-${one}`}
          role="tab"
          href={link(one)}
          aria-selected={one === tab}
          aria-controls="panel"
          tabIndex={one === tab ? 0 : -1}
        >
          {tabNames[one]}
        </a>
      ))}
    </div>
  )
}
