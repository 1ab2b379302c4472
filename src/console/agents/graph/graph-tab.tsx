import { useLayoutEffect, useState } from 'preact/hooks'
import { choiceType, cursorsType, textType, timeType, useAddress } from '../../parts/address.js'
import { Choice, Form, Moment, Problem, sameLabels, TextInput } from '../../parts/field.js'
import { counted, countText, fieldOfMs, isoOf, isUtc, msOfField } from '../../parts/format.js'
import { Button, Empty, Failure, Loading, Time } from '../../parts/texts.js'
import type { SignedIn } from '../../parts/session.js'
import type { EdgePage, ServiceClient, TraversalResult } from '../../../client/index.js'
import { CardTable, CursorPages } from '../../parts/card-table.js'
import { Read, useLoaded } from '../../parts/load.js'
import { agentLink } from '../../route.js'
import { type Branch, firstOf, treeOf } from './tree.js'

/** A field has whole seconds; this extends a typed time to the end of its second. */
const REST_OF_SECOND_MS = 999
const EDGE_TYPE = /^[A-Za-z0-9_.:/-]{1,64}$/

/** The edges of an agent and the agents reachable over them, now or at a point in time. */
export function GraphTab({ session, agent }: { session: SignedIn; agent: string }) {
  const { service, who } = session
  const [filter, setFilter] = useFilter()
  const [revision, setRevision] = useState(0)
  if (who.kind === 'user')
    return (
      <Empty title="Users cannot read edges">
        Sign in with a key that has <code>records:read</code>.
      </Empty>
    )
  const key = `${agent} ${filter.type} ${filter.asOfMs}`
  const shown = { service, agent, filter, revision }
  return (
    <>
      <Filter filter={filter} set={setFilter} refresh={() => setRevision(revision + 1)} />
      <p class="muted">
        {filter.asOfMs === undefined ? 'Current edges. ' : <AsOf ms={filter.asOfMs} />}
        This view is not proved: an edge is proved by the records <code>edge/add</code> and{' '}
        <code>edge/remove</code> of its source agent.
        {who.agents.length > 0 && ' Agents that this key cannot access are omitted.'}
      </p>
      <div class="moments">
        <EdgeTable key={`out ${key}`} {...shown} direction="out" />
        <EdgeTable key={`in ${key}`} {...shown} direction="in" />
      </div>
      <ReachableTree key={key} {...shown} />
    </>
  )
}

/** The filter in the address. Another one starts at the first pages. */
function useFilter(): [EdgeFilter, (filter: EdgeFilter) => void] {
  const [type, setType] = useAddress('type', textType)
  const [asOfMs, setAsOf] = useAddress('at', timeType)
  const [, setOut] = useAddress('out', cursorsType)
  const [, setIn] = useAddress('in', cursorsType)
  const set = (filter: EdgeFilter): void => {
    setOut([])
    setIn([])
    setAsOf(filter.asOfMs)
    setType(filter.type)
  }
  return [{ type, asOfMs }, set]
}

function AsOf({ ms }: { ms: number }) {
  return (
    <>
      As of <Time ms={ms} />, according to the clocks of each agent’s records.{' '}
    </>
  )
}

function Filter(props: { filter: EdgeFilter; set: (filter: EdgeFilter) => void; refresh: () => void }) {
  const { filter, set, refresh } = props
  const [type, setType] = useState('')
  const [at, setAt] = useState('')
  useLayoutEffect(() => {
    setType(filter.type)
    setAt(filter.asOfMs === undefined ? '' : fieldOfMs(filter.asOfMs))
  }, [filter.type, filter.asOfMs, isUtc.value])
  const isWrong = type !== '' && !EDGE_TYPE.test(type)
  return (
    <Form
      class="tools"
      submit={() => {
        const ms = msOfField(at)
        if (!isWrong) set({ type, asOfMs: ms === undefined ? undefined : ms + REST_OF_SECOND_MS })
      }}
    >
      <label class="field">
        Edge type
        <TextInput
          type="search"
          placeholder="All"
          value={type}
          set={(typed) => setType(typed.trim())}
          aria-invalid={isWrong}
          aria-describedby={isWrong ? 'edge-type-problem' : undefined}
        />
      </label>
      <Moment name="As of" value={at} set={setAt} />
      <Button text="Show" type="submit" />
      {(filter.type !== '' || filter.asOfMs !== undefined) && (
        <Button text="Reset" onClick={() => set({ type: '', asOfMs: undefined })} />
      )}
      <Button text="Refresh" class="quiet" onClick={refresh} />
      <Problem
        id="edge-type-problem"
        text={isWrong && 'Expected 1 to 64 characters of A-Z a-z 0-9 _ . : / -'}
      />
    </Form>
  )
}

const PAGE_EDGES = 50

interface EdgeFilter {
  /** Empty for all. */
  type: string
  /** The point in time in Unix milliseconds; undefined for now. */
  asOfMs: number | undefined
}

/** The query parameters of a filter. */
export function optionsOf({ type, asOfMs }: EdgeFilter): { edge_type?: string; as_of?: string } {
  return { ...(type !== '' && { edge_type: type }), ...(asOfMs !== undefined && { as_of: isoOf(asOfMs) }) }
}

/** The outgoing or incoming edges of an agent. */
function EdgeTable(props: {
  service: ServiceClient
  agent: string
  direction: 'out' | 'in'
  filter: EdgeFilter
  /** A new value reads the edges again. */
  revision: number
}) {
  const { service, agent, direction, filter, revision } = props
  const [cursors, setCursors] = useAddress(direction, cursorsType)
  const cursor = cursors.at(-1)
  const read = useLoaded<EdgePage>(`${cursor ?? ''} ${revision}`, (signal) => {
    const page = { direction, limit: PAGE_EDGES, cursor, signal }
    return service.graph.edgePage(agent, { ...page, ...optionsOf(filter) })
  })
  const isOut = direction === 'out'
  const name = isOut ? `Edges from ${agent}` : `Edges to ${agent}`
  return (
    <section class="edges">
      <h2>{isOut ? 'Outgoing edges' : 'Incoming edges'}</h2>
      <Read of={read} what="edges">
        {({ edges }) =>
          edges.length === 0 ? (
            cursor === undefined && <NoEdges isOut={isOut} filter={filter} />
          ) : (
            <CardTable
              name={name}
              rows={edges}
              keyOf={({ src, edge_type: type, dst }) => `${src} ${type} ${dst}`}
              long={['Agent', 'Type']}
              head={['Agent', ({ src, dst }) => <AgentLink agent={isOut ? dst : src} />]}
              numbers={['Weight']}
              cells={{
                Type: ({ edge_type: type }) => <code>{type}</code>,
                Weight: ({ weight }) => weight,
              }}
            />
          )
        }
      </Read>
      <CursorPages cursors={cursors} set={setCursors} next={read.loaded.value?.next_cursor} />
    </section>
  )
}

function AgentLink({ agent }: { agent: string }) {
  return <a href={agentLink(agent, 'graph')}>{agent}</a>
}

function NoEdges({ isOut, filter: { type, asOfMs } }: { isOut: boolean; filter: EdgeFilter }) {
  const title = isOut ? 'No outgoing edges' : 'No incoming edges'
  if (type !== '' || asOfMs !== undefined)
    return <Empty title={title}>Try another type or another time.</Empty>
  return (
    <Empty title={title}>
      Edges are relations between agents. A program adds an edge with <code>POST /v1/graph/edges</code>; the
      edge is a signed record of its source agent.
    </Empty>
  )
}

const SHOWN_BRANCHES = 300
const depths = ['2', '1', '3'] as const
const stepsType = choiceType(depths)

/** The agents reachable from an agent in up to three steps, as a tree. */
function ReachableTree(props: {
  service: ServiceClient
  agent: string
  filter: EdgeFilter
  /** A new value reads the tree again. */
  revision: number
}) {
  const { service, agent, filter, revision } = props
  const [depth, setDepth] = useAddress('steps', stepsType)
  const [most, setMost] = useState(SHOWN_BRANCHES)
  const { loaded, reload } = useLoaded<TraversalResult>(`${depth} ${revision}`, (signal) =>
    service.graph.traverse(agent, { depth: Number(depth), signal, ...optionsOf(filter) }),
  )
  const found = loaded.value
  return (
    <section class="edges" aria-label={`Reachable from ${agent}`}>
      <h2>Reachable agents</h2>
      <div class="tools">
        <Choice
          name="Steps"
          value={depth}
          options={sameLabels(depths.toSorted())}
          set={(chosen) => {
            setMost(SHOWN_BRANCHES)
            setDepth(stepsType.read([chosen]))
          }}
        />
        {found !== undefined && (
          <p role="status" class="muted">
            {counted(found.nodes.length - 1, 'other agent')} by {counted(found.edges.length, 'edge')}
          </p>
        )}
      </div>
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={reload} />}
      {found === undefined && loaded.kind === 'loading' && <Loading what="the reachable agents" />}
      {found?.truncated === true && (
        <p class="notice warn">
          The result is incomplete: it exceeds the server’s limit for one traversal. Choose fewer steps, or
          one edge type.
        </p>
      )}
      {found !== undefined && found.edges.length > 0 && (
        <nav class="tree" aria-label={`Tree from ${agent}`}>
          <strong>{agent}</strong>
          <Branches branches={firstOf(treeOf(agent, found.edges), most)} />
        </nav>
      )}
      {found !== undefined && found.edges.length > most && (
        <p class="muted">
          The first {countText(most)} edges.{' '}
          <Button text="Show more" onClick={() => setMost(most + SHOWN_BRANCHES)} />
        </p>
      )}
    </section>
  )
}

function Branches({ branches }: { branches: readonly Branch[] }) {
  return (
    <ul>
      {branches.map(({ edge: { edge_type: type, dst, weight }, isElsewhere, branches: further }) => (
        <li key={`${type} ${dst}`}>
          <code class="member">{type}</code> → <a href={agentLink(dst, 'graph')}>{dst}</a>{' '}
          <span class="muted">
            {weight !== 1 && `weight ${weight} `}
            {isElsewhere && '(already in this tree)'}
          </span>
          {further.length > 0 && <Branches branches={further} />}
        </li>
      ))}
    </ul>
  )
}
