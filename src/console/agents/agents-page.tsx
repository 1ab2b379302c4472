import { useState } from 'preact/hooks'
import type { ServiceClient } from '../../client/index.js'
import { CardCell, CardRow, CardTable } from '../parts/card-table.js'
import { Choice } from '../parts/choice.js'
import { bytesText, countText, counted, keyDigits, msOf } from '../parts/format.js'
import { type Loaded, useLoaded } from '../parts/load.js'
import { CursorPages } from '../parts/pages.js'
import { Empty, Failure, Loading, ScopedButton, Time } from '../parts/texts.js'
import { agentLink } from '../route.js'
import { useOrganisms } from '../parts/namespaces.js'
import { type SignedIn, may } from '../parts/session.js'
import { zoneMeanings } from '../parts/words.js'
import { NewAgent } from '../parts/new-agent.js'

type StatusPage = Awaited<ReturnType<ServiceClient['agentStatuses']>>

const PAGE_AGENTS = 50

/** All agents that the key reaches, by their names. */
export function AgentsPage({ session }: { session: SignedIn }) {
  const [prefix, setPrefix] = useState('')
  // The cursors that led to this page: the last one is its own, and none is the first page's.
  const [cursors, setCursors] = useState<string[]>([])
  const [making, setMaking] = useState(false)
  const cursor = cursors.at(-1)
  const { loaded, reload } = useLoaded<StatusPage>(`${prefix} ${cursor ?? ''}`, (signal) =>
    session.service.agentStatuses({
      prefix: prefix === '' ? undefined : prefix,
      cursor,
      limit: PAGE_AGENTS,
      signal,
    }),
  )
  const search = (text: string): void => {
    setPrefix(text)
    setCursors([])
  }
  return (
    <div class="page">
      <div class="head">
        <h1>Agents</h1>
        <ScopedButton
          class="primary"
          allowed={may(session.who, 'agents:admin')}
          scope="agents:admin"
          onClick={() => setMaking(true)}
        >
          New agent
        </ScopedButton>
      </div>
      <p class="lead">An agent keeps one strand: records in a chain, each signed with the agent’s key.</p>
      <div class="tools">
        <OrganismChoice session={session} prefix={prefix} choose={search} />
        <label class="field" for="prefix">
          Name begins with
          <input
            id="prefix"
            type="search"
            autocomplete="off"
            spellcheck={false}
            value={prefix}
            onInput={(event) => search(event.currentTarget.value)}
          />
        </label>
        <Total loaded={loaded} />
      </div>
      <Agents loaded={loaded} prefix={prefix} retry={reload} />
      <CursorPages cursors={cursors} set={setCursors} next={loaded.value?.next_cursor} />
      {making && <NewAgent service={session.service} close={() => setMaking(false)} />}
    </div>
  )
}

/** The agents of one organism, whose names begin with its id; nothing where there are no organisms to be seen. */
function OrganismChoice(props: { session: SignedIn; prefix: string; choose: (prefix: string) => void }) {
  const { session, prefix, choose } = props
  const organisms = useOrganisms(session).value ?? []
  if (organisms.length === 0) return null
  const chosen = organisms.find((id) => prefix.startsWith(`${id}::`)) ?? ''
  const options = { '': 'All agents', ...Object.fromEntries(organisms.map((id) => [id, id])) }
  return (
    <Choice
      name="Organism"
      value={chosen}
      options={options}
      set={(id) => choose(id === '' ? '' : `${id}::`)}
    />
  )
}

function Total({ loaded: { value } }: { loaded: Loaded<StatusPage> }) {
  return (
    <p class="muted total" role="status">
      {value === undefined ? '' : counted(value.total, 'agent')}
    </p>
  )
}

function Agents({
  loaded,
  prefix,
  retry,
}: {
  loaded: Loaded<StatusPage>
  prefix: string
  retry: () => void
}) {
  if (loaded.kind === 'failed') return <Failure message={loaded.message} retry={retry} />
  if (loaded.value === undefined) return <Loading what="agents" />
  const { statuses } = loaded.value
  if (statuses.length === 0 && loaded.value.next_cursor === null) {
    return prefix === '' ? (
      <Empty title="No agents yet">
        Make one with “New agent”, or write to a collection: its agent is made then.
      </Empty>
    ) : (
      <Empty title={`No agent’s name begins with “${prefix}”`}>
        Capital and small letters differ. Shorten the beginning, or make a new agent.
      </Empty>
    )
  }
  return (
    <CardTable name="Agents" columns={columns}>
      {statuses.map((agent) => (
        <AgentRow key={agent.agent_id} agent={agent} />
      ))}
    </CardTable>
  )
}

const columns = [
  'Name',
  'Zone',
  { name: 'Records', look: 'number' },
  { name: 'Size', look: 'number' },
  'Last write',
  'Key',
] as const

function AgentRow({ agent }: { agent: StatusPage['statuses'][number] }) {
  return (
    <CardRow
      head={
        <a class="whole" href={agentLink(agent.agent_id)}>
          {agent.agent_id}
        </a>
      }
    >
      <CardCell name="Zone">
        <span class="zone" title={zoneMeanings[agent.zone]}>
          {agent.zone}
        </span>
      </CardCell>
      <CardCell name="Records" isNumber>
        {countText(agent.record_count)}
      </CardCell>
      <CardCell name="Size" isNumber>
        {bytesText(agent.bytes)}
      </CardCell>
      <CardCell name="Last write">
        <Time ms={msOf(agent.timestamp_hlc)} />
      </CardCell>
      <CardCell name="Key">
        <code title={agent.public_key}>…{keyDigits(agent.public_key)}</code>
      </CardCell>
    </CardRow>
  )
}
