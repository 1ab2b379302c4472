import { useState } from 'preact/hooks'
import type { ServiceClient } from '../../client/index.js'
import { CardTable } from '../parts/card-table.js'
import { Choice, Field } from '../parts/field.js'
import { bytesText, countText, counted, keyDigits, msOf } from '../parts/format.js'
import { Read, useLoaded } from '../parts/load.js'
import { CursorPages } from '../parts/pages.js'
import { Empty, ScopedButton, Time } from '../parts/texts.js'
import { agentLink } from '../route.js'
import { useOrganisms } from '../parts/namespaces.js'
import { type SignedIn, hasScope } from '../parts/session.js'
import { zoneMeanings, zones } from '../parts/labels.js'
import { NewAgent } from '../parts/new-agent.js'
import { SortLimit } from '../parts/sort-heading.js'
import { sortable, type Sorting, useSorting, wholeList } from '../parts/sort.js'

type StatusPage = Awaited<ReturnType<ServiceClient['agentStatuses']>>
type Status = StatusPage['statuses'][number]

const PAGE_AGENTS = 50
/** The server’s limit of agents with their status. */
const READ_AGENTS = 100

const sortKeys: Sorting<Status>['keys'] = {
  Name: ({ agent_id: id }) => id,
  Zone: ({ zone }) => zones.indexOf(zone),
  Records: ({ record_count: count }) => count,
  Size: ({ bytes }) => bytes,
  'Last write': ({ timestamp_hlc: hlc }) => msOf(hlc),
}

/** The agents that the key can access, sorted by name. */
export function AgentsPage({ session }: { session: SignedIn }) {
  const [prefix, setPrefix] = useState('')
  // The cursors that led to this page, its own last; empty on the first page.
  const [cursors, setCursors] = useState<string[]>([])
  const [isCreating, setCreating] = useState(false)
  const sorting = useSorting(sortKeys)
  const isSorted = sorting.sort !== undefined
  const cursor = isSorted ? undefined : cursors.at(-1)
  const read = useLoaded<StatusPage>(`${prefix} ${isSorted} ${cursor ?? ''}`, (signal) => {
    const wanted = { prefix: prefix === '' ? undefined : prefix, signal }
    const readPage = (from: string | undefined) =>
      session.service.agentStatuses({ ...wanted, cursor: from, limit: isSorted ? READ_AGENTS : PAGE_AGENTS })
    return isSorted ? wholeList(readPage, joined) : readPage(cursor)
  })
  const { value } = read.loaded
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
          allowed={hasScope(session.who, 'agents:admin')}
          scope="agents:admin"
          onClick={() => setCreating(true)}
        >
          New agent
        </ScopedButton>
      </div>
      <p class="lead">Each agent has one strand: a hash chain of records, signed with the agent’s key.</p>
      <div class="tools">
        <OrganismChoice session={session} prefix={prefix} choose={search} />
        <Field type="search" name="Name begins with" value={prefix} set={search} />
        <p class="muted total" role="status">
          {value === undefined ? '' : counted(value.total, 'agent')}
        </p>
      </div>
      <Read of={read} what="agents">
        {(page) => <Agents page={page} prefix={prefix} sorting={sortable(sorting, page)} />}
      </Read>
      {!isSorted && <CursorPages cursors={cursors} set={setCursors} next={value?.next_cursor} />}
      <SortLimit sorting={sorting} noun="agents" order="name" page={value} />
      {isCreating && <NewAgent service={session.service} close={() => setCreating(false)} />}
    </div>
  )
}

function joined(pages: StatusPage, next: StatusPage): StatusPage {
  return { ...next, statuses: [...pages.statuses, ...next.statuses] }
}

/** Selects the agents of one organism by the prefix of their names; hidden if the key sees no organisms. */
function OrganismChoice(props: { session: SignedIn; prefix: string; choose: (prefix: string) => void }) {
  const { session, prefix, choose } = props
  const organisms = useOrganisms(session).value ?? []
  if (organisms.length === 0) return null
  const chosen = organisms.find((id) => prefix.startsWith(`${id}::`)) ?? ''
  const options = { '': 'All agents', ...Object.fromEntries(organisms.map((id) => [id, id])) }
  return (
    <Choice
      name="Organization"
      value={chosen}
      options={options}
      set={(id) => choose(id === '' ? '' : `${id}::`)}
    />
  )
}

function Agents(props: { page: StatusPage; prefix: string; sorting: Sorting<Status> | undefined }) {
  const { page, prefix, sorting } = props
  const { statuses } = page
  if (statuses.length === 0 && page.next_cursor === null) {
    return prefix === '' ? (
      <Empty title="No agents yet">
        Create one with “New agent”, or write to a collection, which creates its agent.
      </Empty>
    ) : (
      <Empty title={`No agent’s name begins with “${prefix}”`}>
        Names are case-sensitive. Try a shorter prefix, or create a new agent.
      </Empty>
    )
  }
  return (
    <CardTable
      name="Agents"
      rows={statuses}
      keyOf={({ agent_id: id }) => id}
      head={['Name', ({ agent_id: id }) => <AgentLink agent={id} />]}
      numbers={['Records', 'Size']}
      sorting={sorting}
      cells={{
        Zone: ({ zone }) => (
          <span class="zone" title={zoneMeanings[zone]}>
            {zone}
          </span>
        ),
        Records: ({ record_count: count }) => countText(count),
        Size: ({ bytes }) => bytesText(bytes),
        'Last write': ({ timestamp_hlc: hlc }) => <Time ms={msOf(hlc)} />,
        Key: ({ public_key: key }) => <code title={key}>…{keyDigits(key)}</code>,
      }}
    />
  )
}

function AgentLink({ agent }: { agent: string }) {
  return (
    <a class="whole" href={agentLink(agent)}>
      {agent}
    </a>
  )
}
