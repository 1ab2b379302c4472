import { useState } from 'preact/hooks'
import type { ServiceClient } from '../../client/index.js'
import { CardTable, CursorPages, SortLimit } from '../parts/card-table.js'
import { cursorsType, textType, useAddress } from '../parts/address.js'
import { isNamePart, readAccessibleAgents } from '../parts/accessible-agents.js'
import { Choice, Field } from '../parts/field.js'
import { bytesText, countText, counted, keyDigits, msOf } from '../parts/format.js'
import { Read, useLoaded } from '../parts/load.js'
import { Empty, ScopedButton, Time } from '../parts/texts.js'
import { agentLink } from '../route.js'
import { useOrganisms } from '../parts/users.js'
import { type SignedIn, hasScope } from '../parts/session.js'
import { zoneMeanings, zones } from '../parts/labels.js'
import { NewAgent } from '../parts/new-agent.js'
import { sortable, SORTED_MAX, type Sorting, useSorting, wholeList } from '../parts/sort.js'

/** A page of agents; with `isCut`, `total` does not count all. */
type StatusPage = Awaited<ReturnType<ServiceClient['agentStatuses']>> & { isCut: boolean }
type Status = StatusPage['statuses'][number]

const PAGE_AGENTS = 50
/** The server’s limit of agents with their status. */
const READ_AGENTS = 100
/** A key with patterns of names has no pages, and shows no more agents than can be sorted. */
const LIMITED_AGENTS_MAX = SORTED_MAX + 1

const sortKeys: Sorting<Status>['keys'] = {
  Name: ({ agent_id: id }) => id,
  Zone: ({ zone }) => zones.indexOf(zone),
  Records: ({ record_count: count }) => count,
  Size: ({ bytes }) => bytes,
  'Last write': ({ timestamp_hlc: hlc }) => msOf(hlc),
}

/** The agents that the key can access, sorted by name. */
export function AgentsPage({ session }: { session: SignedIn }) {
  // The beginning of the names, which an organism chooses, and a part of them.
  const [prefix, setPrefix] = useAddress('prefix', textType)
  const [part, setPart] = useAddress('contains', textType)
  // The cursors that led to this page, its own last; empty on the first page.
  const [cursors, setCursors] = useAddress('page', cursorsType)
  const [isCreating, setCreating] = useState(false)
  const sorting = useSorting(sortKeys)
  const isSorted = sorting.sort !== undefined
  const cursor = isSorted ? undefined : cursors.at(-1)
  const read = useLoaded<StatusPage>(`${prefix} ${part} ${isSorted} ${cursor ?? ''}`, (signal) => {
    const wanted = { prefix, part, limit: isSorted ? READ_AGENTS : PAGE_AGENTS, signal }
    return isSorted
      ? wholeList((from) => readPage(session, { ...wanted, cursor: from }), joined)
      : readPage(session, { ...wanted, cursor })
  })
  const { value } = read.loaded
  const search = (change: { prefix?: string; part?: string }): void => {
    setCursors([])
    setPrefix(change.prefix ?? prefix)
    setPart(change.part ?? part)
  }
  return (
    <div class="page">
      <div class="head">
        <h1>Agents</h1>
        <ScopedButton
          text="New agent"
          class="primary"
          allowed={hasScope(session.who, 'agents:admin')}
          scope="agents:admin"
          onClick={() => setCreating(true)}
        />
      </div>
      <p class="lead">
        Each agent has one strand: a hash chain of records, signed with the agent’s key. Record 0, the
        genesis, begins it with the key and the zone, and is not one of the records counted.
      </p>
      <div class="tools">
        <OrganismChoice session={session} prefix={prefix} choose={(chosen) => search({ prefix: chosen })} />
        <Field
          type="search"
          name="Name contains"
          value={part}
          set={(typed) => search({ part: typed.trim() })}
        />
        <p class="muted total" role="status">
          {totalText(value, part !== '' && cursor !== undefined)}
        </p>
      </div>
      <Read of={read} what="agents">
        {(page) => (
          <Agents
            page={page}
            part={part}
            isAll={prefix === '' && part === ''}
            sorting={sortable(sorting, page)}
          />
        )}
      </Read>
      {!isSorted && <CursorPages cursors={cursors} set={setCursors} next={value?.next_cursor} />}
      <SortLimit sorting={sorting} noun="agents" order="name" page={value} />
      {isCreating && <NewAgent service={session.service} close={() => setCreating(false)} />}
    </div>
  )
}

/** Reads a page of agents; for a key that is limited to agents, all of these on one page. */
async function readPage(
  { service, who }: SignedIn,
  wanted: { prefix: string; part: string; cursor: string | undefined; limit: number; signal: AbortSignal },
): Promise<StatusPage> {
  const { prefix, part, cursor, limit, signal } = wanted
  if (!isNamePart(part)) return { agents: [], statuses: [], total: 0, next_cursor: null, isCut: false }
  if (who.agents.length === 0) {
    const named = { prefix: prefix === '' ? undefined : prefix, contains: part === '' ? undefined : part }
    const page = await service.agentStatuses({ ...named, cursor, limit, signal })
    return { ...page, isCut: part !== '' && page.next_cursor !== null }
  }
  const found = await readAccessibleAgents(service, who, { most: LIMITED_AGENTS_MAX, contains: part, signal })
  const statuses = found.statuses.filter(({ agent_id: name }) => name.startsWith(prefix))
  statuses.sort(({ agent_id: left }, { agent_id: right }) => (left < right ? -1 : 1))
  const agents = statuses.map(({ agent_id: name }) => name)
  return { agents, statuses, total: agents.length, next_cursor: null, isCut: found.isCut }
}

/** The total of a page of a search counts from the beginning of that page on. */
function joined(pages: StatusPage, next: StatusPage): StatusPage {
  const statuses = [...pages.statuses, ...next.statuses]
  const total = pages.isCut ? pages.statuses.length + next.total : next.total
  return { ...next, statuses, total }
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

/** The number of agents; later pages of a search count only what they examined. */
function totalText(page: StatusPage | undefined, isLater: boolean): string {
  if (page === undefined || isLater) return ''
  return `${page.isCut ? 'at least ' : ''}${counted(page.total, 'agent')}`
}

function Agents(props: {
  page: StatusPage
  part: string
  isAll: boolean
  sorting: Sorting<Status> | undefined
}) {
  const { page, part, isAll, sorting } = props
  const { statuses } = page
  if (statuses.length === 0 && page.next_cursor === null) {
    return isAll ? (
      <Empty title="No agents yet">
        Create one with “New agent”, or write to a collection, which creates its agent.
      </Empty>
    ) : (
      <Empty title={part === '' ? 'No agents yet' : `No agents match “${part}”`}>
        Try a shorter text, or create a new agent.
      </Empty>
    )
  }
  // A search of very many names has pages without a match.
  if (statuses.length === 0)
    return <Empty title={'No matching agents so far'}>Choose “Next” to continue the search.</Empty>
  return (
    <CardTable
      name="Agents"
      rows={statuses}
      keyOf={({ agent_id: id }) => id}
      head={['Name', ({ agent_id: id }) => <AgentLink agent={id} />]}
      long={['Name']}
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
