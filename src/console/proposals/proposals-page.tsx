import { useState } from 'preact/hooks'
import type { ProposalView } from '../../client/index.js'
import { type AddressType, choiceType, sameView, useAddress } from '../parts/address.js'
import { CardTable } from '../parts/card-table.js'
import { useConfirmed, TextInput } from '../parts/field.js'
import { countText } from '../parts/format.js'
import { Read, useLoaded } from '../parts/load.js'
import { principalText } from '../parts/labels.js'
import { useReloadWhenDue } from '../parts/now.js'
import { type KeyNames, Principal, useKeyNames } from '../parts/principal.js'
import { useRoving } from '../parts/roving.js'
import { Button, Empty, Time } from '../parts/texts.js'
import { type ProposalList, proposalLink, proposalLists, type Route } from '../route.js'
import { type SignedIn, hasScope } from '../parts/session.js'
import { type Sorting, useSorting } from '../parts/sort.js'
import { ProposalDrawer, When } from './proposal-drawer.js'
import { readList, type ReadList } from './read.js'
import { whatText } from '../parts/proposal-labels.js'

type ProposalsRoute = Extract<Route, { screen: 'proposals' }>

const PROPOSALS_READ = 1_000

const listType = choiceType(proposalLists)

/** @param usual the agent of a key that is limited to agents */
function agentType(usual: string): AddressType<string> {
  return { read: ([agent = usual]) => agent, write: (agent) => [agent], isStep: true }
}

const listNames: Record<ProposalList, string> = { waiting: 'Pending', mine: 'Mine', decided: 'Decided' }

/** Pending and decided proposals. */
export function ProposalsPage({ session, route }: { session: SignedIn; route: ProposalsRoute }) {
  const { who } = session
  // The list that led to a proposal stays visible behind its drawer.
  const [listBehind] = useAddress('list', listType)
  const list = route.list ?? listBehind
  const isLimited = who.agents.length > 0
  const [agent, setAgent] = useAddress('agent', agentType(who.agents.find((one) => !one.endsWith('*')) ?? ''))
  const agentField = useConfirmed(agent, (typed) => setAgent(typed.trim()))
  const [most, setMost] = useState(PROPOSALS_READ)
  const mayRead = hasScope(who, 'proposals:decide') && (!isLimited || agent !== '')
  const read = useLoaded(`${list} ${agent} ${most}`, async (signal) => {
    const wanted = { list, principal: who.principal, agent: agent === '' ? undefined : agent }
    return mayRead ? readList(session.service, wanted, { most, signal }) : undefined
  })
  const { loaded, reload } = read
  useReloadWhenDue(loaded.value, dueTimes(loaded.value?.proposals ?? []), reload)
  return (
    <div class="page">
      <h1>Proposals</h1>
      <p class="lead">
        Changes that do not take effect immediately because of an agent’s zone. Each step of a proposal is a
        signed record.
      </p>
      <Lists list={list} />
      <div class="tools">
        <label class="field">
          Agent
          <TextInput type="search" placeholder={isLimited ? 'An agent of this key' : 'All'} {...agentField} />
        </label>
        <Button text="Refresh" class="quiet" onClick={reload} />
      </div>
      {mayRead ? (
        <Read of={read} what="proposals">
          {(found) => found && <List key={list} {...{ session, found, list }} />}
        </Read>
      ) : (
        <Unavailable isLimited={isLimited && hasScope(who, 'proposals:decide')} />
      )}
      {loaded.value?.isCut === true && (
        <p class="muted">
          Only the first {countText(most)} proposals were read. Enter an agent to narrow the list, or{' '}
          <Button text="Read more" onClick={() => setMost(most + PROPOSALS_READ)} />
        </p>
      )}
      {route.id !== undefined && (
        <ProposalDrawer
          key={route.id}
          session={session}
          id={route.id}
          decided={reload}
          close={() => {
            location.hash = sameView(proposalLink(list), { list: '' })
          }}
        />
      )}
    </div>
  )
}

function Lists({ list }: { list: ProposalList }) {
  const links = useRoving<HTMLElement>()
  return (
    <nav ref={links} class="tabs" aria-label="Lists of proposals">
      {proposalLists.map((one) => (
        <a
          key={one}
          href={sameView(proposalLink(one), { list: '', sort: '' })}
          aria-current={one === list ? 'page' : undefined}
        >
          {listNames[one]}
        </a>
      ))}
    </nav>
  )
}

function Unavailable({ isLimited }: { isLimited: boolean }) {
  return isLimited ? (
    <Empty title="Choose an agent">This key is limited to certain agents. Enter one of them above.</Empty>
  ) : (
    <Empty title="This key cannot read proposals">
      Sign in with a key that has <code>proposals:decide</code>.
    </Empty>
  )
}

function dueTimes(proposals: readonly ProposalView[]): number[] {
  return proposals.flatMap(({ state, effective_at_ms: ms }) =>
    state === 'proposed' && ms !== null ? [ms] : [],
  )
}

function sortKeysOf(list: ProposalList, names: KeyNames): Sorting<ProposalView>['keys'] {
  const keys: Sorting<ProposalView>['keys'] = {
    Change: whatText,
    Agent: ({ agent }) => agent,
    'Proposed by': ({ proposer }) => names.get(proposer) ?? principalText(proposer),
    Proposed: ({ created_at_ms: ms }) => ms,
  }
  return list === 'waiting'
    ? { ...keys, 'Takes effect': ({ effective_at_ms: ms }) => ms }
    : { ...keys, State: ({ ended_at_ms: ms }) => ms }
}

function List(props: { session: SignedIn; found: ReadList; list: ProposalList }) {
  const { session, found, list } = props
  const { proposals, isCut } = found
  const names = useKeyNames(session)
  const sorting = useSorting(sortKeysOf(list, names))
  if (proposals.length === 0) return <EmptyList list={list} />
  return (
    <CardTable
      name={`${listNames[list]} proposals`}
      rows={proposals}
      keyOf={({ proposal_id: id }) => id}
      sorting={isCut ? undefined : sorting}
      long={['Change', 'Agent', 'Proposed by']}
      head={['Change', (proposal) => <ProposalLink proposal={proposal} list={list} />]}
      cells={{
        Agent: ({ agent }) => agent,
        'Proposed by': ({ proposer }) => <Principal id={proposer} names={names} who={session.who} />,
        Proposed: ({ created_at_ms: ms }) => <Time ms={ms} />,
        [list === 'waiting' ? 'Takes effect' : 'State']: (proposal) => <When proposal={proposal} />,
      }}
    />
  )
}

function ProposalLink({ proposal, list }: { proposal: ProposalView; list: ProposalList }) {
  return (
    <a class="whole" href={sameView(proposalLink(proposal.proposal_id), { list })}>
      {whatText(proposal)}
    </a>
  )
}

function EmptyList({ list }: { list: ProposalList }) {
  switch (list) {
    case 'waiting':
      return (
        <Empty title="No pending proposals">
          Changes of agents in the zones governed, protected and immutable_core appear here.
        </Empty>
      )
    case 'mine':
      return <Empty title="You have no proposals">Your changes of agents in these zones appear here.</Empty>
    case 'decided':
      return <Empty title="No decided proposals yet">See the pending proposals.</Empty>
  }
}
