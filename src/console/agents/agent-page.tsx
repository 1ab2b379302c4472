import { useEffect, useRef } from 'preact/hooks'
import type { AgentStatusResponse } from '../../client/index.js'
import { bytesText, countText, msOf } from '../parts/format.js'
import { lazy } from '../parts/lazy.js'
import { useLoaded } from '../parts/load.js'
import { Failure, Hash, Key, Loading, Time } from '../parts/texts.js'
import { ProofTab } from './proof-tab.js'
import { LiveTab } from '../parts/records/tail-rows.js'
import { RecordsTab } from './records/records-tab.js'
import { agentLink, type AgentTab, agentTabs, type Route } from '../route.js'
import type { SignedIn } from '../parts/session.js'
import { zoneMeanings } from '../parts/words.js'

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
  agent: 'Agent',
}

/** One agent: what it is, and its records, live events and proof. */
export function AgentPage({ session, route }: { session: SignedIn; route: AgentRoute }) {
  const { agent, tab } = route
  const { service } = session
  const { loaded, reload } = useLoaded(agent, (signal) => service.agent(agent).status({ signal }))
  // Each tab shows the state of the agent as it is now.
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
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={reload} />}
      {loaded.value === undefined && loaded.kind === 'loading' && <Loading what="the agent" />}
      {loaded.value !== undefined && (
        <>
          <AgentFacts status={loaded.value} />
          <Tabs agent={agent} tab={tab} />
          <div role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`}>
            {tab === 'records' && (
              <RecordsTab session={session} status={loaded.value} seq={route.seq} reload={reload} />
            )}
            {tab === 'live' && <LiveTab service={service} status={loaded.value} />}
            {tab === 'time' && <TimeTab service={service} status={loaded.value} reload={reload} />}
            {tab === 'proof' && <ProofTab service={service} status={loaded.value} />}
            {tab === 'graph' && <GraphTab session={session} agent={agent} />}
            {tab === 'rules' && <RulesTab session={session} status={loaded.value} reload={reload} />}
            {tab === 'agent' && <AgentTab session={session} status={loaded.value} reload={reload} />}
          </div>
        </>
      )}
    </div>
  )
}

function AgentFacts({ status }: { status: AgentStatusResponse }) {
  return (
    <dl class="line-facts">
      <div>
        <dt>Zone</dt>
        <dd title={zoneMeanings[status.zone]}>{status.zone}</dd>
      </div>
      <div>
        <dt>Records</dt>
        <dd>
          {countText(status.record_count)}, {bytesText(status.bytes)}
        </dd>
      </div>
      <div>
        <dt>Last write</dt>
        <dd>
          <Time ms={msOf(status.timestamp_hlc)} />
        </dd>
      </div>
      <div>
        <dt>Strand</dt>
        <dd>
          <Hash hex={status.strand} name="the strand" />
        </dd>
      </div>
      <div>
        <dt>Key</dt>
        <dd>
          <Key hex={status.public_key} name="the public key" />
        </dd>
      </div>
    </dl>
  )
}

function Tabs({ agent, tab }: { agent: string; tab: AgentTab }) {
  const move = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    const next = agentTabs.at((agentTabs.indexOf(tab) + step) % agentTabs.length) ?? tab
    location.hash = agentLink(agent, next)
    document.querySelector<HTMLElement>(`#tab-${next}`)?.focus()
  }
  return (
    <div class="tabs" role="tablist" aria-label={`Parts of ${agent}`} onKeyDown={move}>
      {agentTabs.map((one) => (
        <a
          key={one}
          id={`tab-${one}`}
          role="tab"
          href={agentLink(agent, one)}
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
